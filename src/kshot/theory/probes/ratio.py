"""Accuracy of blends along the ratio: the fitted ratios beside the optimum, what the common offset Delta costs, and the
separation that the blend path reaches."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.methods.blending import blend
from kshot.solvers.ratio_sweep import GRID, accuracy_curve, sweep_predictions
from kshot.solvers.rows import (
    class_counts,
    class_independent_share,
    class_means,
    common_offset,
    optimal_ratio,
    population_moments,
    squared_norms,
    unit_prototypes,
)
from kshot.stats.correlation import rank_correlation
from kshot.theory.capacity import capacity, headroom, margin_ratio, pooled_covariance, separation_error
from kshot.theory.decision import squared_cosines
from kshot.theory.probes.spread import support_ratios
from kshot.types import Array, Labelled

STEPS = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)


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


def offset_row(means: Float[Array, "C d"], text: Float[Array, "C d"]) -> dict[str, float]:
    """Share, length and direction of Delta; `means` come from the pool (paper, Theorem 1 and its test)."""
    offset = common_offset(means, text)
    residual = text - means - offset
    to_differences = float(squared_cosines(offset, means).mean())
    return {
        "share": class_independent_share(means, text),
        "length": float(np.sqrt(offset @ offset)),
        "residual length": float(np.sqrt(squared_norms(residual).mean())),
        "cos² to class differences": to_differences,
        "cos² to residuals": float(squared_cosines(offset, residual).mean()),
        "cosine to residuals": float(_cosines(offset, residual).mean()),
        "1/d": 1 / means.shape[1],
        "d·cos²": to_differences / (1 / means.shape[1]),
    }


def translation_row(
    support: Labelled, residue: Labelled, test: Labelled, text: Float[Array, "C d"]
) -> dict[str, float]:
    """Change of accuracy, in points, when every prototype of the oracle blend moves by a·Delta.

    Theorem 1(i) does not hold exactly for cosine scores. Delta comes from outside the support.
    """
    means, population = (class_means(part.X, part.y, len(text)) for part in (support, residue))
    ratio, best = oracle_ratio(test, means, text)
    prototypes, offset = ratio * means + (1 - ratio) * text, common_offset(population, text)
    return {f"a = {a:+.2f}": 100 * (prototype_accuracy(test, prototypes + a * offset) - best) for a in STEPS}


def counterfactual_row(
    support: Labelled, residue: Labelled, test: Labelled, text: Float[Array, "C d"]
) -> dict[str, float]:
    """Points that James–Stein loses against the oracle ratio, with the text as it is and with Delta subtracted.

    Delta comes from outside the support.
    """
    offset = common_offset(class_means(residue.X, residue.y, len(text)), text)
    real, without = _deficit(support, test, text), _deficit(support, test, text - offset)
    return {"deficit": real, "without offset": without, "recovered": without - real}


def _deficit(support: Labelled, test: Labelled, text: Float[Array, "C d"]) -> float:
    means = class_means(support.X, support.y, len(text))
    best = oracle_ratio(test, means, text)[1]
    return 100 * (blend_accuracy(test, means, text, support_ratios(support, text)) - best)


def _cosines(offset: Float[Array, " d"], rows: Float[Array, "C d"]) -> Float[Array, " C"]:
    """cos(Delta, delta_c) of every class (paper, Cor. 1: eta); 0 where delta_c vanishes."""
    lengths = np.sqrt(squared_norms(rows) * (offset @ offset))
    return np.divide(rows @ offset, lengths, out=np.zeros(len(rows)), where=lengths > 0)


def headroom_row(pool: Labelled, text: Float[Array, "C d"]) -> dict[str, float]:
    """Mean margins, errors and headroom of Theorem 2, in per cent where they are errors."""
    X = pool.X.astype(np.float64)
    means = class_means(X, pool.y, len(text))
    ratios = capacity(means, text.astype(np.float64), pooled_covariance(X, pool.y, len(text)))
    error = {name: 100 * np.mean(separation_error(getattr(ratios, name))) for name in ("path", "plane", "full")}
    return {
        "pairs": float(len(ratios.full)),
        "path/full": float(margin_ratio(ratios).mean()),
        "path error": float(error["path"]),
        "plane error": float(error["plane"]),
        "full error": float(error["full"]),
        "headroom": float(100 * headroom(ratios).mean()),
        "best s": float(ratios.shrinkage.mean()),
    }


def stored_headroom(store: Store, strata: Iterable[tuple[str, str]], tier: str) -> dict[tuple[str, str], float]:
    """Headroom in points of error of every (dataset, backbone) that has this tier's prompts."""
    return {
        (dataset, backbone): headroom_row(
            load_stratum(store, dataset, backbone).pool, load_prior(store, dataset, backbone, tier).text
        )["headroom"]
        for dataset, backbone in strata
        if tier in store.tiers(dataset, backbone)
    }
