"""Training in the span of the data: gradient steps never leave it, so a smaller space gives the same head."""

import numpy as np
from jaxtyping import Float

from kshot.types import Array


def span_basis(*rows: Float[Array, "*B _ d"]) -> Float[Array, "*B d r"] | None:
    """Orthonormal bases that hold all rows, or None where they are no smaller than d.

    Momentum SGD and ridge penalties commute with rotations, so training on X·Q and turning the weights back by
    Qᵀ is exact.
    """
    if sum(part.shape[-2] for part in rows) >= rows[0].shape[-1]:
        return None
    return np.linalg.qr(np.concatenate(rows, axis=-2).swapaxes(-1, -2))[0]
