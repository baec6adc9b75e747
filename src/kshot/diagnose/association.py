"""Rank correlations: raw, with a third variable taken out, and within groups."""

import numpy as np
from jaxtyping import Float, Shaped

from kshot.types import Array


def spearman(a: Float[Array, " n"], b: Float[Array, " n"]) -> float:
    """Rank correlation; NaN where either side is constant or fewer than three points exist."""
    from scipy.stats import rankdata

    return _pearson(rankdata(a), rankdata(b))


def partial_spearman(a: Float[Array, " n"], b: Float[Array, " n"], given: Float[Array, " n"]) -> float:
    """Rank correlation of what a line through the ranks of `given` leaves of both."""
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (a, b, given)]
    design = np.stack([np.ones(len(a)), ranks[2]], axis=1)
    left = [r - design @ np.linalg.lstsq(design, r, rcond=None)[0] for r in ranks[:2]]
    return _pearson(*left)


def within(a: Float[Array, " n"], b: Float[Array, " n"], groups: Shaped[Array, " n"]) -> float:
    """Median over groups of the rank correlation inside each; NaN where no group has one."""
    inside = np.array([spearman(a[groups == g], b[groups == g]) for g in np.unique(groups)])
    known = inside[np.isfinite(inside)]
    return float(np.median(known)) if len(known) else float("nan")


def _pearson(a: Float[Array, " n"], b: Float[Array, " n"]) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if len(a) > 2 and scale > 1e-9 * len(a) else float("nan")
