"""What the fitted ratios agree with: the population's optimum, the probes' surplus, a tuned cache weight."""

import numpy as np
from jaxtyping import Float, Shaped

from kshot.solvers.rows import class_counts, squared_norms
from kshot.solvers.shrinkage import optimal_ratio, population_moments
from kshot.stats.correlation import association, rank_correlation
from kshot.theory.probes.section import Row
from kshot.theory.probes.spread import support_ratios
from kshot.types import Array, Labelled


def optimum_row(support: Labelled, residue: Labelled, text: Float[Array, "C d"]) -> Row:
    """James–Stein against λ* with moments from outside the support, class by class."""
    shots = class_counts(support.y, len(text)).astype(text.dtype)
    means, trace = population_moments(residue.X, residue.y, len(text))
    target = optimal_ratio(squared_norms(text - means), trace / shots)
    fitted = support_ratios(support, text)
    return {
        "mean James–Stein": float(fitted.mean()),
        "mean λ*": float(target.mean()),
        "Spearman": rank_correlation(fitted.astype(np.float64), target.astype(np.float64)),
        "mean |difference|": float(np.abs(fitted - target).mean()),
    }


def surplus_row(
    headroom: Float[Array, " n"],
    surplus: Float[Array, " n"],
    difficulty: Float[Array, " n"],
    dataset: Shaped[Array, " n"],
    backbone: Shaped[Array, " n"],
) -> Row:
    """Predicted headroom against measured surplus over strata (paper, Sec. 3.5)."""
    relation = association(headroom, surplus, difficulty, dataset, backbone)
    return {
        "strata": len(headroom),
        "Spearman": relation.rho.mean,
        "given difficulty": relation.given_difficulty.mean,
        "within dataset": relation.within_dataset,
        "within backbone": relation.within_backbone,
    }


def tuned_weight_rows(
    backbone: Shaped[Array, " n"],
    james_stein: Float[Array, " n"],
    leave_one_out: Float[Array, " n"],
    alpha: Float[Array, " n"],
) -> list[Row]:
    """Both validation-free ratios against Tip-Adapter's test-tuned alpha over cells, one row per backbone."""
    rows: list[Row] = []
    for name in np.unique(backbone):
        here = backbone == name
        rows.append(
            {
                "backbone": str(name),
                "cells": int(here.sum()),
                "James–Stein": rank_correlation(james_stein[here], alpha[here]),
                "leave-one-out": rank_correlation(leave_one_out[here], alpha[here]),
            }
        )
    return rows
