"""Standard error of the James–Stein ratio over draws (paper, Prop. 4 and 5).

d̂² = |t − mean|² and v̂ = tr(scatter)/(K(K−1)) are independent for Gaussian shots, and the ratio
1 − v̂/d̂² inherits their variances by the delta method.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError
from kshot.theory.values import Values, require_positive, require_shots
from kshot.types import Array

if TYPE_CHECKING:
    from scipy.stats._distn_infrastructure import rv_frozen


def distance_law(g2: float, v: float, d: int) -> "rv_frozen":
    """d̂² ~ (v/d)·chi²_d(g²d/v) under isotropy (paper, Eq. 9)."""
    from scipy.stats import ncx2

    require_positive(v, "v")
    return ncx2(df=d, nc=g2 * d / v, scale=v / d)


def variance_law(v: float, d: int, shots: int) -> "rv_frozen":
    """v̂ ~ v·chi²_{d(K−1)}/(d(K−1)) under isotropy (paper, Eq. 9)."""
    from scipy.stats import chi2

    require_shots(shots)
    require_positive(v, "v")
    return chi2(df=d * (shots - 1), scale=v / (d * (shots - 1)))


def isotropic_standard_error(ratio: Values, d: int, shots: int) -> Values:
    """(1−λ*)·sqrt(2/d)·sqrt(1/(K−1) + 1 − λ*²) (paper, Eq. 10)."""
    require_shots(shots)
    return (1 - ratio) * np.sqrt(2 / d) * np.sqrt(1 / (shots - 1) + 1 - ratio**2)


def distance_variance(along: Values, trace_square: Values, shots: int) -> Values:
    """Var d̂² = 4·bᵀSigma b/K + 2·tr(Sigma²)/K², with `along` = bᵀSigma b and b = t − mu* (Prop. 5)."""
    return 4 * along / shots + 2 * trace_square / shots**2


def variance_variance(trace_square: Values, shots: int) -> Values:
    """Var v̂ = 2·tr(Sigma²)/(K²(K−1)) (Prop. 5)."""
    require_shots(shots)
    return 2 * trace_square / (shots**2 * (shots - 1))


def participation_ratio(trace: Values, trace_square: Values) -> Values:
    """(tr Sigma)²/tr(Sigma²) in [1, d]: the effective number of directions of the spread."""
    require_positive(trace_square, "tr(Sigma²)")
    return trace**2 / trace_square


def general_standard_error(g2: Values, trace: Values, trace_square: Values, along: Values, shots: int) -> Values:
    """Standard error of the ratio for any covariance (paper, Eq. 11); Eq. 10 when Sigma = sigma²·I."""
    v = trace / shots
    d2 = g2 + v
    require_positive(d2, "g² + v")
    from_scatter = variance_variance(trace_square, shots) / d2**2
    from_distance = v**2 * distance_variance(along, trace_square, shots) / d2**4
    return np.sqrt(from_scatter + from_distance)


def unbiased_trace_of_square(rows: Float[Array, "n d"]) -> float:
    """Unbiased tr(Sigma²) for any distribution and any mean, from the Gram matrix of at least four rows.

    The U-statistic of Chen and Qin's programme: products of inner products over distinct rows,
    sum(G_ij²) − 2·sum(G_ij G_jk) + sum(G_ij G_kl), each divided by its number of terms. It does not change
    when the mean is subtracted, and then every row of G sums to zero, so the three sums are closed forms.
    (Leaving out only the pair when centring, as Chen and Qin 2010 print it, adds muᵀSigma mu/(n−2).)
    """
    n = len(rows)
    if n < 4:
        raise InputError(f"{n} rows, but an unbiased tr(Sigma²) needs at least four. Use a larger pool.")
    centred = rows - rows.mean(axis=0)
    gram = centred @ centred.T
    trace, diagonal, total = np.trace(gram), np.sum(np.diag(gram) ** 2), np.sum(gram**2)
    pairs = total - diagonal
    triples = 2 * diagonal - total
    quadruples = trace**2 - 6 * diagonal + 2 * total
    return float(
        pairs / (n * (n - 1)) - 2 * triples / (n * (n - 1) * (n - 2)) + quadruples / (n * (n - 1) * (n - 2) * (n - 3))
    )
