"""Normal scores: deviations on the scale of a standard normal, and how large the largest of many is by chance."""

import numpy as np
from jaxtyping import Float

from kshot.types import Array


def normal_score(z: Float[Array, " n"] | float, freedom: Float[Array, " n"] | float) -> Array | float:
    """The normal deviate as rare as a Student-t deviate with these degrees of freedom; at most 37."""
    from scipy.special import ndtri, stdtr

    return -np.sign(z) * ndtri(np.maximum(stdtr(freedom, -np.abs(z)), 1e-300))


def normal_level(level: float, tests: int) -> float:
    """The |z| that the largest of so many independent normal scores passes with this probability."""
    from scipy.special import ndtri

    return float(-ndtri(0.5 * (1 - (1 - level) ** (1 / max(tests, 1)))))
