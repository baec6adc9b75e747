"""Two isotropic Gaussian classes: the exact risk of a blend and the shrinkage of least risk.

Text prototypes t_± = mu_± + Delta ± delta, class difference u = mu_+ − mu_−, s = 1 − λ (paper, Cor. 1, 2).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError
from kshot.theory.values import Values
from kshot.types import Array


@dataclass(frozen=True, slots=True)
class PairGeometry:
    """Inner products of a pair's u, delta and offset Delta."""

    u2: float
    delta2: float
    gamma: float  # u·delta
    beta: float = 0.0  # Delta·u
    eta: float = 0.0  # Delta·delta


def pair_geometry(u: Float[Array, " d"], delta: Float[Array, " d"], offset: Float[Array, " d"]) -> PairGeometry:
    scalars = (u @ u, delta @ delta, u @ delta, offset @ u, offset @ delta)
    return PairGeometry(*map(float, scalars))


def signed_margins(s: Values, pair: PairGeometry) -> tuple[Values, Values]:
    """A_±(s) = |u|²/2 + (γ ∓ β)·s ∓ 2·η·s², signed distances of the class means to the boundary, times |w| (Cor. 1)."""
    common = pair.u2 / 2 + pair.gamma * s
    tilt = pair.beta * s + 2 * pair.eta * s**2
    return common - tilt, common + tilt


def score_variance(s: Values, pair: PairGeometry, sigma2: float) -> Values:
    """B(s) = sigma²·(|u|² + 4γ·s + 4|delta|²·s²), the variance of the score within a class (Cor. 1)."""
    return sigma2 * (pair.u2 + 4 * pair.gamma * s + 4 * pair.delta2 * s**2)


def blend_error(s: Values, pair: PairGeometry, sigma2: float) -> Values:
    """Balanced error of the blend with exact image prototypes (paper, Eq. 15)."""
    from scipy.special import ndtr

    plus, minus = signed_margins(s, pair)
    spread = np.sqrt(score_variance(s, pair, sigma2))
    if not np.all(spread > 0):
        raise InputError("The blended prototypes of the two classes coincide: nothing separates them.")
    return (ndtr(-plus / spread) + ndtr(-minus / spread)) / 2


def noisy_score_variance(s: Values, pair: PairGeometry, sigma2: float, v: float) -> Values:
    """B_v(s) = B(s) + sigma²·2v·(1−s)²: the score variance when the means are estimated.

    Exact for the input's variance; the variances of the estimated direction and midpoint, of order (v/d)·|w|²,
    are left out (study, supplement).
    """
    return score_variance(s, pair, sigma2) + sigma2 * 2 * v * (1 - s) ** 2


def deflection(s: Values, pair: PairGeometry, sigma2: float, v: float) -> Values:
    """Expected margin over the root of the noisy score variance; Corollary 2 maximises it."""
    plus, minus = signed_margins(s, pair)
    return (plus + minus) / 2 / np.sqrt(noisy_score_variance(s, pair, sigma2, v))


def noise_aware_shrinkage(pair: PairGeometry, v: float) -> float:
    """s* of Corollary 2, clipped to [0, 1]; 0 for exact means (v = 0) and where |u|² + 2γ ≤ 0.

    Where delta is parallel to u and v = 0, every s has the same risk and 0 is returned.
    """
    if pair.beta or pair.eta:
        raise InputError("Corollary 2 holds for an offset orthogonal to u and delta (beta = eta = 0).")
    towards = 2 * v * (pair.u2 + 2 * pair.gamma)
    against = 4 * (pair.u2 * pair.delta2 - pair.gamma**2) + 4 * pair.gamma * v + 2 * v * pair.u2
    if towards <= 0:
        return 0.0
    # The deflection still rises at s = 0; a root that is negative or absent means that it never stops.
    return min(1.0, towards / against) if against > 0 else 1.0
