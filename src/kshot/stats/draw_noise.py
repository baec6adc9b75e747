"""How far a mean would move over other draws of the shots, and what a difference of two runs means beside that.

All cells of a draw stay together: encoders, tiers and methods share its shots, and K shots contain the K/2 of the same
seed. So a dataset's seeds are what varies.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from kshot.types import Array

AGREES, DIFFERS, CANNOT_TELL = "agrees", "differs", "cannot tell"
# A dataset with fewer draws shows no noise of its own; it gets what the others have.
LEAST_DRAWS = 3
# Runs without faults have no "differs" with this probability.
CONFIDENCE = 0.95
# A difference of one percentage point matters.
MATTERS = 1.0
ROUNDING = 1e-6


class DrawNoise(NamedTuple):
    """Variance of a weighted mean over other draws, NaN where no dataset shows any, and its degrees of freedom."""

    variance: float
    freedom: float

    def __add__(self, other: "DrawNoise") -> "DrawNoise":  # pyright: ignore[reportIncompatibleMethodOverride]
        """Noise of the difference of two independent means; degrees of freedom by Satterthwaite's rule."""
        total = self.variance + other.variance
        square = self.variance**2 / self.freedom + other.variance**2 / other.freedom
        return DrawNoise(total, total**2 / square if square > 0 else self.freedom + other.freedom)


class Judged(NamedTuple):
    """A difference in its standard errors, and one of three words."""

    error: float
    z: float
    verdict: str


def draw_noise(
    values: Float[Array, " n"],
    weights: Float[Array, " n"],
    stratum: Int[Array, " n"],
    dataset: Shaped[Array, " n"],
    seed: Int[Array, " n"],
) -> DrawNoise:
    """The noise of the weighted mean; values of a stratum differ by their draws alone."""
    totals = np.bincount(stratum, weights)
    means = np.bincount(stratum, weights * values) / np.where(totals > 0, totals, 1)
    moved = weights * (values - means[stratum])
    shares, known, lent = [], [], 0.0
    for name in np.unique(dataset):
        here = dataset == name
        share, draws = weights[here].sum(), len(np.unique(seed[here]))
        if draws < LEAST_DRAWS:
            lent += share**2
            continue
        by_seed = np.bincount(np.unique(seed[here], return_inverse=True)[1], moved[here])
        shares.append(share**2)
        known.append((draws / (draws - 1) * float(by_seed @ by_seed), draws - 1))
    if not known:
        return DrawNoise(float("nan"), 1.0)
    own = sum(variance for variance, _ in known)
    square = sum(variance**2 / freedom for variance, freedom in known)
    freedom = own**2 / square if square > 0 else float(sum(freedom for _, freedom in known))
    return DrawNoise(own * (1 + lent / sum(shares)), freedom)


def judge(difference: float, noise: DrawNoise, comparisons: int) -> Judged:
    """Compare a difference of two runs with its noise.

    They agree only if a difference of one point would have been seen. In 95 % of cases none of so many comparisons of
    runs without faults differs (Šidák's bound).
    """
    from scipy.special import stdtrit

    error = float(np.sqrt(max(noise.variance, ROUNDING**2))) if np.isfinite(noise.variance) else float("nan")
    limit = float(stdtrit(noise.freedom, (1 + CONFIDENCE ** (1 / max(comparisons, 1))) / 2))
    z = difference / error
    if abs(z) > limit:
        return Judged(error, z, DIFFERS)
    return Judged(error, z, AGREES if limit * error <= MATTERS else CANNOT_TELL)
