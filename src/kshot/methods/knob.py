"""Knobs: what a method with one offers, and the curves of choices by leave-one-out and by folds.

A method with a knob gives its grid and the accuracy of every value (`Knob`). If it has an exact leave-one-out rule it
may give that as well (`KnobWithLeaveOneOut`); else every shot is left out once and the method is fitted again. Balanced
folds leave one shot of every class out at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from kshot.errors import UndefinedError
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, part_of
from kshot.solvers.folds import Fold, balanced_folds, has_siblings, ranks_by_text
from kshot.solvers.rows import shot_numbers
from kshot.types import LABEL_FREE_EVIDENCE, Array, Evidence, Labelled, MethodInfo


@runtime_checkable
class Knob(Protocol):
    """A scalar (or pair) with a grid; earlier values win ties."""

    @property
    def info(self) -> MethodInfo: ...

    def knob_name(self) -> str: ...

    def knob_grid(self) -> Sequence[Any]: ...

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        """Accuracy on the queries of the head fitted on the task, at every value of the grid."""
        ...


@runtime_checkable
class KnobWithLeaveOneOut(Knob, Protocol):
    """A knob whose method has a leave-one-out rule of its own."""

    def knob_loo_curve(self, task: Task) -> Float[Array, " L"]: ...


@runtime_checkable
class KnobWithFolds(Knob, Protocol):
    """A knob whose method predicts left-out rows exactly without being fitted again."""

    def knob_folds_curve(self, task: Task, folds: Sequence[Fold]) -> Float[Array, " L"]: ...


@runtime_checkable
class KnobWithHeads(Knob, Protocol):
    """A knob that can be held at one value."""

    def knob_at(self, value: Any) -> Classifier:
        """The unfitted method with its knob at this value."""
        ...


@runtime_checkable
class KnobWithScores(Knob, Protocol):
    """A knob whose scores at all values share work."""

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        """The scores at every value in turn; an array may be overwritten by the next."""
        ...


def knob_evidence(info: MethodInfo) -> frozenset[Evidence]:
    """Evidence of a knob's oracle: text and queries where the method reads them, the shots and the test labels."""
    needed: set[Evidence] = {"support", "test"}
    return frozenset(needed | (info.sees & LABEL_FREE_EVIDENCE))


def leave_one_out_curve(method: Knob, task: Task) -> Float[Array, " L"]:
    """The method's own rule where it has one, else one refit per shot."""
    if isinstance(method, KnobWithLeaveOneOut):
        return method.knob_loo_curve(task)
    rows = np.arange(len(task.y))
    alone = (rows == row for row in np.flatnonzero(has_siblings(task.y)))
    return held_out_curve(method, task, [Fold(~row, row) for row in alone])


def balanced_fold_curve(method: Knob, task: Task, most_folds: int | None = None) -> Float[Array, " L"]:
    """As many refits as the largest class has shots, or about `most_folds`: each class of two or more loses a shot."""
    return held_out_curve(method, task, list(folds_of(task, most_folds)))


def folds_of(task: Task, most_folds: int | None = None) -> Iterator[Fold]:
    """Balanced folds in the order of closeness to text, or of the shots where there is no text."""
    number = ranks_by_text(task.X, task.y, task.text) if "text" in task.info.sees else shot_numbers(task.y)
    return balanced_folds(number, task.y, None if most_folds is None else most_folds * task.n_classes)


def held_out_curve(method: Knob, task: Task, folds: Sequence[Fold]) -> Float[Array, " L"]:
    """Accuracy on the left-out rows: in closed form where the method has one, else with a refit per fold."""
    if not folds:
        raise UndefinedError(f"{method.info.key} needs 2 shots per class to leave one out.")
    if isinstance(method, KnobWithFolds):
        return method.knob_folds_curve(task, folds)
    hits, total = np.zeros(len(method.knob_grid())), 0
    for kept, scored in folds:
        queries = Labelled(task.X[scored], task.y[scored])
        hits += len(queries.y) * method.knob_curve(part_of(task, kept), queries)
        total += len(queries.y)
    return hits / total
