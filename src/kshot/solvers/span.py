"""Training in the span of the data: gradient steps never leave it, so a smaller space gives the same head."""

import numpy as np
from jaxtyping import Float

from kshot.types import Array


def span_basis(X: Float[Array, "B M d"], text: Float[Array, "B C d"]) -> Float[Array, "B d r"] | None:
    """Orthonormal bases that hold every row of X and text, or None where they are no smaller than d.

    Momentum SGD commutes with rotations, so training on X·Q and turning the weights back by Qᵀ is exact.
    """
    if X.shape[1] + text.shape[1] >= X.shape[2]:
        return None
    return np.linalg.qr(np.concatenate([X, text], axis=1).swapaxes(1, 2))[0]
