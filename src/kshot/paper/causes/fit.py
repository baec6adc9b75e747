"""One multiple of a pattern per name, with the noise of the draws: what shifts and exchanges are judged by."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.paper.causes.cells import CellPair
from kshot.stats.scores import normal_score
from kshot.types import Array

# Points that the precision of arithmetic may move an accuracy, on which no draw has an influence.
PRECISION = 0.02


class Fit(NamedTuple):
    """By code the multiple of a pattern: the drop of the squares when it is taken out, its normal score by the noise of
    draws alone, and the multiple by the whole covariance."""

    gain: Float[Array, " c"]
    score: Float[Array, " c"]
    size: Float[Array, " c"]


def fit(
    cells: CellPair,
    solved: Float[Array, " N"],
    code: Int[Array, " N"],
    count: int,
    pattern: Float[Array, " N"] | None = None,
) -> Fit:
    """One multiple of the pattern (one everywhere unless given) per code; a code of −1 is none."""
    at = np.flatnonzero(code >= 0 if pattern is None else (code >= 0) & (pattern != 0))
    code, p = code[at], np.ones(len(at)) if pattern is None else pattern[at]
    G = len(cells.names["dataset"])
    weight = p / cells.variance[at]

    def summed(values: Float[Array, " n"]) -> Float[Array, " c"]:
        return np.bincount(code, values, count).astype(float)

    total = summed(weight * p)
    known = total > 0
    safe = np.where(known, total, 1)
    place = code * G + cells.codes["dataset"][at]
    by_factor = np.stack([np.bincount(place, weight * f, count * G) for f in cells.factors[at].T], axis=1)
    by_factor = by_factor.reshape(count, G, -1)
    shares = (by_factor**2).sum(axis=2) / safe[:, None] ** 2
    variance, square = shares.sum(axis=1), (shares**2).sum(axis=1)
    freedom = cells.freedom * np.where(square > 0, variance**2 / np.where(square > 0, square, 1), 1)
    error = np.sqrt(np.maximum(variance, (PRECISION * summed(np.abs(weight)) / safe) ** 2))
    score = normal_score(summed(weight * cells.difference[at]) / safe / np.where(known, error, 1), freedom)
    along = np.einsum("cgf,gfh->cgh", by_factor, cells.inner)
    curvature = np.maximum(summed(cells.diagonal[at] * p**2) - (along**2).sum(axis=(1, 2)), 1e-12)
    slope = summed(p * solved[at])
    return Fit(np.where(known, slope**2 / curvature, 0), np.where(known, score, 0), slope / curvature)
