"""Does a prediction per stratum order what was measured there?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from kshot.stats.bootstrap import Estimate
from kshot.stats.correlation import rank_correlation, spearman
from kshot.types import Array


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
    inside = np.array([rank_correlation(a[groups == g], b[groups == g]) for g in np.unique(groups)])
    known = inside[np.isfinite(inside)]
    return float(np.median(known)) if len(known) else float("nan")
