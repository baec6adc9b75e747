"""What every blend shares: p_c(λ) = λ·mu_c + (1−λ)·t_c, scored by cosine (paper, Eq. 1)."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import unit_prototypes
from kshot.types import Array


def blend(
    means: Float[Array, "C d"], text: Float[Array, "C d"], ratio: float | Float[Array, " C"]
) -> Float[Array, "C d"]:
    """Unit prototypes at one ratio for all classes, or one per class."""
    lam = np.broadcast_to(np.asarray(ratio, means.dtype), (len(means),))[:, None]
    return unit_prototypes(lam * means + (1 - lam) * text)


def ratio_summary(ratios: Float[Array, " C"]) -> dict[str, float]:
    """What a record keeps of one ratio per class."""
    return {
        "mean": float(ratios.mean()),
        "min": float(ratios.min()),
        "max": float(ratios.max()),
        "share_at_0": float(np.mean(ratios == 0)),
    }
