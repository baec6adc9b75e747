"""Pictures that deserve a second look: wrong label, or the same picture twice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from kshot.pictures.held_out import Shots
from kshot.types import Array

NEAR_DUPLICATE = 0.995
# The left-out head must prefer the other class this many times over the given one.
ODDS = 3.0
BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """A picture whose left-out head and nearest sibling both say another class."""

    row: int
    says: int
    probability: float


@dataclass(frozen=True, slots=True)
class Twins:
    """Two pictures that look the same to the encoder."""

    first: int
    second: int


def mislabelled(shots: Shots, measured: Int[Array, " M"], probabilities: Float[Array, "M C"]) -> list[Mislabelled]:
    """Most suspicious first."""
    nearest, _ = nearest_rows(shots)
    suspects = []
    for row, own in zip(measured.tolist(), probabilities, strict=True):
        says = int(own.argmax())
        agrees = shots.y[nearest[row]] == says
        if says != shots.y[row] and agrees and own[says] >= ODDS * own[shots.y[row]]:
            suspects.append(Mislabelled(row, says, float(own[says])))
    return sorted(suspects, key=lambda one: -one.probability)


def twins(shots: Shots) -> list[Twins]:
    """Every picture whose nearest is almost itself, once per pair."""
    nearest, cosine = nearest_rows(shots)
    pairs = {(min(i, int(n)), max(i, int(n))) for i, n in enumerate(nearest) if cosine[i] >= NEAR_DUPLICATE}
    return [Twins(*pair) for pair in sorted(pairs)]


def repeated(hashes: Sequence[str], labels: Sequence[int]) -> list[int]:
    """Rows whose file content came before in the same class: a copy is no further shot, and left out it would
    be scored by a head that has seen it."""
    seen: set[tuple[str, int]] = set()
    again = []
    for row, key in enumerate(zip(hashes, labels, strict=True)):
        if key in seen:
            again.append(row)
        seen.add(key)
    return again


def nearest_rows(shots: Shots) -> tuple[Int[Array, " N"], Float[Array, " N"]]:
    """The nearest other picture of each, and the cosine to it."""
    nearest, best = np.zeros(len(shots.y), np.int64), np.full(len(shots.y), -1.0, np.float32)
    for start in range(0, len(shots.y), BLOCK):
        cosine = shots.X[start : start + BLOCK] @ shots.X.T
        rows = np.arange(len(cosine))
        cosine[rows, start + rows] = -np.inf
        nearest[start + rows] = cosine.argmax(axis=1)
        best[start + rows] = cosine.max(axis=1)
    return nearest, best
