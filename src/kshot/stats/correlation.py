"""Rank correlations with cluster-bootstrap intervals; ranks are taken anew in every resample."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Shaped

from kshot.stats.bootstrap import Estimate, finite_median, shared_draws, with_interval
from kshot.types import Array

BLOCK = 500


def rank_correlation(a: Float[Array, " n"], b: Float[Array, " n"], given: Float[Array, " n"] | None = None) -> float:
    """Spearman's rho over the points that are finite on every side; with `given`, the rank correlation of what a line
    through its ranks leaves of both.

    NaN where a side is constant or fewer than three such points exist.
    """
    columns, known = _finite(a, b, given)
    n = np.count_nonzero(known)
    return float(weighted_rank_correlation(columns, np.ones((1, n)))[0]) if n > 2 else float("nan")


def spearman(
    a: Float[Array, " n"], b: Float[Array, " n"], clusters: Shaped[Array, " n"], given: Float[Array, " n"] | None = None
) -> Estimate:
    """`rank_correlation` with an interval: Student-t on the bootstrap standard error, cut to [−1, 1]."""
    columns, known = _finite(a, b, given)
    names, group = np.unique(clusters[known], return_inverse=True)
    n = int(np.count_nonzero(known))
    rho = rank_correlation(a, b, given)
    if len(names) < 2 or not np.isfinite(rho):
        return Estimate(rho, None, None, n, len(names))
    weights = shared_draws(len(names))
    blocks = (weights[start : start + BLOCK] for start in range(0, len(weights), BLOCK))
    resampled = np.concatenate([weighted_rank_correlation(columns, block[:, group]) for block in blocks])
    return with_interval(rho, n, len(names), resampled[np.isfinite(resampled)], (-1.0, 1.0))


@dataclass(frozen=True)
class Association:
    """Rank correlations over strata: plain, with the ranks of difficulty taken out, and inside groups (medians)."""

    rho: Estimate
    given_difficulty: Estimate
    within_dataset: float
    within_backbone: float


def association(
    predicted: Float[Array, " n"],
    measured: Float[Array, " n"],
    difficulty: Float[Array, " n"],
    dataset: Shaped[Array, " n"],
    backbone: Shaped[Array, " n"],
) -> Association:
    """Predicted headroom against measured surplus, one pair per (dataset, backbone) (paper, Sec. 3.5)."""
    # Means of the same accuracies differ in their last bits with the order of summation: those are ties.
    predicted, measured, difficulty = (np.round(side, 9) for side in (predicted, measured, difficulty))
    return Association(
        rho=spearman(predicted, measured, dataset),
        given_difficulty=spearman(predicted, measured, dataset, difficulty),
        within_dataset=within(predicted, measured, dataset),
        within_backbone=within(predicted, measured, backbone),
    )


def within(a: Float[Array, " n"], b: Float[Array, " n"], groups: Shaped[Array, " n"]) -> float:
    """Median over groups of the rank correlation inside each; NaN where no group has one."""
    inside = [rank_correlation(a[groups == g], b[groups == g]) for g in np.unique(groups)]
    return finite_median(np.array(inside))


def _finite(*sides: Float[Array, " n"] | None) -> tuple[list[Float[Array, " m"]], Bool[Array, " n"]]:
    """The points that are finite on every given side, and their mask; a NaN would be ranked as the largest value."""
    given = [side for side in sides if side is not None]
    known = np.logical_and.reduce([np.isfinite(side) for side in given])
    return [side[known] for side in given], known


def weighted_ranks(values: Float[Array, " n"], weights: Float[Array, "R n"]) -> Float[Array, "R n"]:
    """Mid-ranks of `values` when each is repeated `weight` times, per row of weights."""
    _, tie = np.unique(values, return_inverse=True)
    order = np.argsort(tie, kind="stable")
    starts = np.searchsorted(tie[order], np.arange(tie.max() + 1))
    per_value = np.add.reduceat(weights[:, order], starts, axis=1)
    below = np.cumsum(per_value, axis=1) - per_value
    return (below + (per_value + 1) / 2)[:, tie]


def weighted_rank_correlation(
    columns: Sequence[Float[Array, " n"]], weights: Float[Array, "R n"]
) -> Float[Array, " R"]:
    """`rank_correlation` of two or three columns of finite points, each repeated `weight` times, per row of weights."""
    centred = []
    total = weights.sum(axis=1, keepdims=True)
    for values in columns:
        ranks = weighted_ranks(values, weights)
        centred.append(ranks - (weights * ranks).sum(axis=1, keepdims=True) / total)

    def product(x: Array, y: Array) -> Array:
        return np.einsum("rn,rn,rn->r", weights, x, y)

    a, b = centred[:2]
    if len(columns) == 3:
        c = centred[2]
        scale = product(c, c)
        a, b = (x - _quotient(product(x, c), scale)[:, None] * c for x in (a, b))
    spread_a, spread_b = product(a, a), product(b, b)
    floor = 1e-9 * total[:, 0] ** 3
    spread = np.where((spread_a > floor) & (spread_b > floor), np.sqrt(spread_a * spread_b), 0)
    return np.where(spread > 0, _quotient(product(a, b), spread), np.nan)


def _quotient(above: Float[Array, " R"], below: Float[Array, " R"]) -> Float[Array, " R"]:
    return above / np.where(below > 0, below, 1)
