"""The James–Stein side of blending: how far each class's mean should shrink towards its text prototype."""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import class_counts, class_means, class_sums, row_blocks, squared_norms
from kshot.types import Array


def mean_variances(X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"]) -> Float[Array, " C"]:
    """v_c = sum_i |x_i − mu_c|² / (K(K−1)), the estimated squared error of a class mean (needs K ≥ 2)."""
    counts = class_counts(y, len(means)).astype(X.dtype)
    distances = np.empty(len(X), X.dtype)
    for here in row_blocks(len(X)):
        distances[here] = squared_norms(X[here] - means[y[here]])
    scatter = class_sums(distances[:, None], y, len(means))[:, 0]
    return scatter / (counts * (counts - 1))


def james_stein_ratio(v: Float[Array, " C"], d2: Float[Array, " C"]) -> Float[Array, " C"]:
    """(1 − v/d²)₊ (paper, Prop. 2); 0 where text and mean coincide."""
    return np.where(d2 > 0, np.clip(1 - v / np.where(d2 > 0, d2, 1), 0, None), 0).astype(v.dtype)


def optimal_ratio(g2: Float[Array, " C"], v: Float[Array, " C"]) -> Float[Array, " C"]:
    """g²/(g² + v), the ratio of least squared error (paper, Prop. 1); 0 where both vanish."""
    total = g2 + v
    return np.where(total > 0, g2 / np.where(total > 0, total, 1), 0).astype(g2.dtype)


def common_offset(means: Float[Array, "C d"], text: Float[Array, "C d"]) -> Float[Array, " d"]:
    """The class-independent part of text minus image, Delta of the paper's decomposition."""
    return (text - means).mean(axis=0)


def class_independent_share(means: Float[Array, "C d"], text: Float[Array, "C d"]) -> float:
    """1 − mean|delta_c|²/mean|t_c − mu_c|²: how much of the text–image distance all classes share."""
    difference = text - means
    residue = difference - difference.mean(axis=0)
    return float(1 - squared_norms(residue).mean() / squared_norms(difference).mean())


def correct_for_shots(lam: float, shots: int | float) -> float:
    """Carry a ratio fitted with K−1 shots to K: odds × K/(K−1); a ratio of 1 stays 1."""
    odds = lam * shots / (shots - 1)
    return odds / (odds + (1 - lam))


def population_moments(
    X: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int
) -> tuple[Float[Array, "C d"], Float[Array, " C"]]:
    """Class means and traces of the class covariances, from data outside the support."""
    means = class_means(X, y, n_classes)
    counts = class_counts(y, n_classes).astype(X.dtype)
    return means, mean_variances(X, y, means) * counts
