"""Accuracy of blends, and the fitted ratios against the population's optimum."""

import numpy as np
from jaxtyping import Float

from kshot.methods.blending import blend
from kshot.solvers.ratio_sweep import GRID, accuracy_curve, sweep_predictions
from kshot.solvers.rows import (
    class_counts,
    class_means,
    optimal_ratio,
    population_moments,
    squared_norms,
    unit_prototypes,
)
from kshot.stats.correlation import rank_correlation
from kshot.theory.probes.spread import support_ratios
from kshot.types import Array, Labelled


def oracle_ratio(test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"]) -> tuple[float, float]:
    """(ratio, accuracy) of the best point on the grid, chosen on the labels it is scored on."""
    curve = accuracy_curve(sweep_predictions(test.X, means, text), test.y)
    best = int(curve.argmax())
    return float(GRID[best]), float(curve[best])


def prototype_accuracy(test: Labelled, prototypes: Float[Array, "C d"]) -> float:
    """Accuracy of cosine scoring; the prototypes need not have unit length."""
    scores = test.X @ unit_prototypes(prototypes).T
    return float(np.mean(scores.argmax(axis=1) == test.y))


def blend_accuracy(
    test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"], ratios: Float[Array, " C"]
) -> float:
    return prototype_accuracy(test, blend(means, text, ratios))


def optimum_row(support: Labelled, residue: Labelled, text: Float[Array, "C d"]) -> dict[str, float]:
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


def objectives_row(support: Labelled, residue: Labelled, test: Labelled, text: Float[Array, "C d"]) -> dict[str, float]:
    """One ratio for all classes: of least prototype error and of most accuracy, and the points between them (paper,
    Fig. 1B).

    The error is least at the optimum of the means over classes of g² and v, from outside the support.
    """
    shots = class_counts(support.y, len(text))
    means, trace = population_moments(residue.X, residue.y, len(text))
    g2, v = squared_norms(text - means).mean(), (trace / shots).mean()
    least_error = float(optimal_ratio(np.array([g2]), np.array([v]))[0])
    own = class_means(support.X, support.y, len(text))
    best, accuracy = oracle_ratio(test, own, text)
    at_least_error = blend_accuracy(test, own, text, np.full(len(text), least_error, text.dtype))
    return {
        "λ of least error": least_error,
        "λ of most accuracy": best,
        "accuracy lost": 100 * (accuracy - at_least_error),
    }
