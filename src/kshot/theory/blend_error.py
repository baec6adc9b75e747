"""Squared error of a blend, and when James–Stein provably lowers it (paper, Prop. 1 to 3).

The ratio of least error, its James–Stein plug-in and the K-correction are in `kshot.solvers.rows`, because
methods use them too.
g² = |t − mu*|² is the squared bias of the text prototype, v = tr Sigma*/K the squared error of the mean.
"""

import numpy as np

from kshot.errors import InputError
from kshot.theory.values import Values, require_shots


def blend_risk(ratio: Values, g2: Values, v: Values) -> Values:
    """E|p(λ) − mu*|² = (1−λ)²·g² + λ²·v (paper, Eq. 4)."""
    return (1 - ratio) ** 2 * g2 + ratio**2 * v


def optimal_risk(g2: Values, v: Values) -> Values:
    """g²·v/(g² + v), the least squared error of a blend (paper, Prop. 1); 0 where either is 0."""
    total = np.asarray(g2 + v)
    return np.where(total > 0, g2 * v / np.where(total > 0, total, 1), 0.0)


def classical_james_stein_ratio(tau2: Values, d2: Values, d: int) -> Values:
    """(1 − (d−2)·tau²/d²)₊ with a known variance tau² per coordinate of the mean (paper, Eq. 8).

    At d = 2 nothing is shrunk (the ratio is 1), and in one dimension the rule does not exist.
    """
    if d < 2:
        raise InputError(f"d = {d}, but the James–Stein rule needs at least two dimensions.")
    return np.clip(1 - (d - 2) * tau2 / d2, 0, None)


def dominates_mean(shots: int, d: int) -> bool:
    """(K−1)(d−4) ≥ 2: the James–Stein blend has less squared error than the mean, everywhere (Prop. 3)."""
    require_shots(shots)
    return (shots - 1) * (d - 4) >= 2


def mean_inverse_square(g2: float, tau2: float, d: int) -> float:
    """E[1/|X|²] of X ~ N(theta, tau²·I) with |theta|² = g²: a Poisson mixture of 1/(tau²·(d − 2 + 2j))."""
    if d < 3:
        raise InputError(f"d = {d}, but E[1/|X|²] is infinite below three dimensions.")
    from scipy.stats import poisson

    rate = g2 / tau2 / 2
    spread = 12 * np.sqrt(rate) + 60
    j = np.arange(max(0, int(rate - spread)), int(rate + spread))
    return float(poisson.pmf(j, rate) @ (1 / (d - 2 + 2 * j)) / tau2)


def unclipped_risk_change(g2: float, v: float, d: int, shots: int) -> float:
    """Risk of 1 − v̂/d̂² (not clipped) minus the risk v of the mean, isotropic Gaussian shots.

    m·tau⁴·E[1/|X|²]·(c²(m+2) − 2c(d−2)) with m = d(K−1), c = d/m, tau² = v/d (study, proof of Prop. 3).
    Its sign is the dominance condition; at equality it is zero and the clipping alone gains.
    """
    require_shots(shots)
    m, tau2 = d * (shots - 1), v / d
    c = d / m
    return m * tau2**2 * mean_inverse_square(g2, tau2, d) * (c**2 * (m + 2) - 2 * c * (d - 2))
