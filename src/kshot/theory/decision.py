"""What blending does to decisions: a shift common to all prototypes does nothing (paper, Theorem 1); two isotropic
Gaussian classes have an exact risk, and a shrinkage of least risk (Cor. 1, 2).

Of the two: text prototypes t_± = mu_± + Delta ± delta, class difference u = mu_+ − mu_−, s = 1 − λ.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError
from kshot.solvers.rows import squared_norms
from kshot.theory import values
from kshot.theory.values import Values
from kshot.types import Array


def inner_product_scores(X: Float[Array, "N d"], prototypes: Float[Array, "C d"]) -> Float[Array, "N C"]:
    """x·p_c: score differences, and so decisions, ignore a common shift of the prototypes (i)."""
    return X @ prototypes.T


def nearest_prototype_scores(X: Float[Array, "N d"], prototypes: Float[Array, "C d"]) -> Float[Array, "N C"]:
    """−|x − p_c|²: shifting every prototype by Delta equals shifting every input by −Delta (ii)."""
    return 2 * X @ prototypes.T - squared_norms(prototypes) - squared_norms(X)[:, None]


def decisive_part(offset: Float[Array, " d"], prototypes: Float[Array, "C d"]) -> Float[Array, " d"]:
    """Projection of an offset on span{p_c − p_c'}, the only part that changes nearest-prototype decisions (ii)."""
    differences = (prototypes - prototypes.mean(axis=0)).T
    basis, weights, _ = np.linalg.svd(differences, full_matrices=False)
    basis = basis[:, weights > weights.max() * max(differences.shape) * np.finfo(weights.dtype).eps]
    return basis @ (basis.T @ offset)


def expected_squared_overlap(offset2: Values, w2: Values, d: int) -> Values:
    """E⟨Delta, w⟩² = |Delta|²·|w|²/d for an isotropic Delta (iii)."""
    return offset2 * w2 / d


def squared_cosines(offset: Float[Array, " d"], prototypes: Float[Array, "C d"]) -> Float[Array, " P"]:
    """cos²(Delta, p_c − p_c') of every pair; about 1/d for a random direction, 0 for equal prototypes."""
    length2 = float(offset @ offset)
    values.require_positive(length2, "|offset|²")
    centred = prototypes - prototypes.mean(axis=0)
    along = centred @ offset
    overlap, w2 = values.pair_products(np.outer(along, along)), values.pair_products(centred @ centred.T)
    return np.where(w2 > 0, overlap / (np.where(w2 > 0, w2, 1) * length2), 0.0)


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
