"""What every blend shares: p_c(λ) = λ·mu_c + (1−λ)·t_c, scored by cosine (study, Eq. 1)."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import squared_norms
from kshot.types import Array


def blend(
    means: Float[Array, "C d"], text: Float[Array, "C d"], ratio: float | Float[Array, " C"]
) -> Float[Array, "C d"]:
    """Unit prototypes at one ratio for all classes, or one per class."""
    lam = np.broadcast_to(np.asarray(ratio, means.dtype), (len(means),))[:, None]
    return unit_prototypes(lam * means + (1 - lam) * text)


def unit_prototypes(prototypes: Float[Array, "C d"]) -> Float[Array, "C d"]:
    """Directions; a prototype of zero length stays zero and scores 0 everywhere."""
    norms = np.sqrt(squared_norms(prototypes))[:, None]
    return prototypes / np.where(norms > np.finfo(prototypes.dtype).eps, norms, 1)


def summary(ratios: Float[Array, " C"]) -> dict[str, float]:
    """What a record keeps of one ratio per class."""
    return {
        "mean": float(ratios.mean()),
        "min": float(ratios.min()),
        "max": float(ratios.max()),
        "share_at_0": float(np.mean(ratios == 0)),
    }
