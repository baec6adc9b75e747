"""Classes without any shot: the head learns from the others, and text joins it in the head's own units.

What a step in text is worth to a head can be seen on the classes that it has learnt. Over the shots, with the mean over
those classes taken out of every picture because a softmax ignores it, its scores s are regressed on text:

    a = sum_ic z_ic·(s_ic − s̄_i) / sum_ic z_ic²,   z_ic = x_i·(t_c − t̄)

A class without shots then scores s̄(x) + a·x·(t_c − t̄). A head that is a multiple of text gets its own rows back, the
scores of the other classes stay as they are, and a linear head stays linear. No label but the shots' is looked at.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from kshot.methods.evidence import Task
from kshot.types import Array


class TextRows(NamedTuple):
    """What a class without shots scores above the mean of the others, and where it stands among all classes."""

    slope: float
    rows: Float[Array, "U d"]
    seen: Bool[Array, " C"]


def seen_part(task: Task) -> Task:
    """The same task without the classes that have no shots."""
    seen = task.counts > 0
    number = np.cumsum(seen) - 1
    return replace(task, y=number[task.y], text=task.text[seen], n_classes=int(seen.sum()), classes=task.classes[seen])


def text_rows(scores: Float[Array, "N S"], task: Task) -> TextRows:
    """From the head's scores of the shots over the classes that have some. Text is never turned round: a ≥ 0."""
    seen = task.counts > 0
    centre = task.text[seen].mean(axis=0)
    z = (task.X @ (task.text[seen] - centre).T).astype(np.float64)
    steps = float(np.vdot(z, z))
    # The means of z over the classes are zero, so those of the scores need not be taken out.
    slope = max(0.0, float(np.vdot(z, scores)) / steps) if steps else 0.0
    return TextRows(slope, (slope * (task.text[~seen] - centre)).astype(task.text.dtype), seen)


def among_seen(learnt: Float[Array, "S ..."], joining: Float[Array, "U ..."], seen: Bool[Array, " C"]) -> Array:
    """One entry per class along the first axis; joining ones stand upon the mean of those that were learnt."""
    whole = np.empty((len(seen), *learnt.shape[1:]), learnt.dtype)
    whole[seen], whole[~seen] = learnt, learnt.mean(axis=0) + joining
    return whole
