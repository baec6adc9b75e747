"""Several augmented views of each shot: the views stand in for the shots they were made from."""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from kshot.methods.evidence import Task
from kshot.solvers.ratio_sweep import deflated_means
from kshot.solvers.rows import unit_prototypes
from kshot.types import Array, Labelled


def every_view(task: Task) -> Labelled:
    """All views as rows of their own, view by view; the shots themselves where there are none."""
    if task.views is None:
        return Labelled(task.X, task.y)
    return Labelled(task.views.reshape(-1, task.X.shape[1]), np.tile(task.y, len(task.views)))


def view_by_view(task: Task) -> list[Float[Array, "N d"]]:
    """One array of all shots per view; the shots themselves where there are none."""
    return [task.X] if task.views is None else list(task.views)


def part_of(task: Task, rows: Bool[Array, " N"]) -> Task:
    """The same task with these shots only, their views with them."""
    views = None if task.views is None else task.views[:, rows]
    return replace(task, X=task.X[rows], y=task.y[rows], views=views)


def average_view(task: Task) -> Float[Array, "N d"]:
    """One row per shot: the unit direction of the mean of its unit views."""
    return task.X if task.views is None else unit_prototypes(task.views.mean(axis=0))


def without_own_image(task: Task, means: Float[Array, "C d"]) -> Float[Array, "M d"]:
    """For each row of `every_view`, its class mean with that picture's views taken out.

    Rows of a class with a single picture get its whole mean; callers do not score them.
    """
    if task.views is None:
        return deflated_means(task.X, task.y, means, task.counts)
    left = deflated_means(task.views.mean(axis=0), task.y, means, task.counts)
    return np.tile(left, (len(task.views), 1))
