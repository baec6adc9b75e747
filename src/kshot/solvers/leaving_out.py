"""Folds that leave shots out.

Fold j leaves out shot j of every class, so that all classes compete with equally many. Two rules number the shots.
`shot_numbers` (of `rows`) takes them as they come, which needs nothing but labels. `ranks_by_text` sorts them by
closeness to their class's text, so that the order in which shots were given does not matter; it needs text.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.rows import shot_numbers
from kshot.types import Array


class Fold(NamedTuple):
    """Rows to learn from and left-out rows to score."""

    kept: Bool[Array, " N"]
    scored: Bool[Array, " N"]


def ranks_by_text(X: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"]) -> Int[Array, " N"]:
    """The number of each shot within its class, the closest to the class's text first."""
    order = np.lexsort((-np.einsum("nd,nd->n", X, text[y]), y))
    numbers = np.empty(len(y), np.int64)
    numbers[order] = shot_numbers(y[order])
    return numbers


def has_siblings(y: Int[Array, " N"]) -> Bool[Array, " N"]:
    """Rows whose class has another shot; a class's only shot cannot be left out."""
    return np.bincount(y)[y] > 1


def balanced_folds(number: Int[Array, " N"], y: Int[Array, " N"], most_scored: int | None = None) -> Iterator[Fold]:
    """As many folds as the largest class has shots; every shot with a sibling is scored in exactly one.

    A class with fewer shots than there are folds starts over, and so loses one shot in each of them as well. Where
    about `most_scored` rows are enough, folds at equal distances stand for all.
    """
    siblings = has_siblings(y)
    counts = np.bincount(y)[y]
    folds = int(number.max()) + 1
    taken = folds if most_scored is None else min(folds, max(1, round(folds * most_scored / len(y))))
    for fold in ((np.arange(taken) + 0.5) * folds / taken).astype(int).tolist():
        scored = siblings & (number == fold)
        if scored.any():
            yield Fold(~siblings | (number != fold % counts), scored)
