"""A linear map of the image features held near the identity (Fahes et al., 2024), trained by full-batch Adam.

With F = X·Wᵀ, u = f/|f|, S = U·Tᵀ and R = tau·(softmax(tau·S) − Y)/N the gradient of the mean cross-entropy is
dFᵀX with dF_i = (R_i·T − (R_i·S_i)·u_i)/|f_i|; the penalty lambda·|W − I|² adds 2·lambda·(W − I).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks, squared_norms
from kshot.solvers.training import adam, softmax_residual
from kshot.types import Array


def mapped(X: Float[Array, "n d"], W: Float[Array, "d d"]) -> tuple[Float[Array, "n d"], Float[Array, "n 1"]]:
    """Unit rows of X·Wᵀ, and one over their lengths; a row that is mapped to zero stays zero."""
    F = X @ W.T
    lengths = np.sqrt(squared_norms(F))[:, None]
    inverse = 1 / np.where(lengths > 0, lengths, 1)
    F *= inverse
    return F, inverse


def train_linear_adapter(
    views: Sequence[Float[Array, "N d"]],
    y: Int[Array, " N"],
    text: Float[Array, "C d"],
    rates: Float[Array, " T"],
    *,
    penalty: float,
    scale: float,
    eps: float,
) -> Iterator[Float[Array, "d d"]]:
    """W after every epoch, always the same array; epoch e learns from view (e + 1) mod V."""
    identity = np.eye(text.shape[1], dtype=text.dtype)
    W = identity.copy()
    update = adam([W], eps=eps)
    for epoch, rate in enumerate(rates.tolist()):
        X = views[(epoch + 1) % len(views)]
        gradient = (2 * penalty) * (W - identity)
        for here in row_blocks(len(y)):
            gradient += _cross_entropy_gradient(X[here], y[here], text, W, scale, len(y))
        update([gradient], rate)
        yield W


def _cross_entropy_gradient(
    X: Float[Array, "b d"], y: Int[Array, " b"], text: Float[Array, "C d"], W: Float[Array, "d d"], scale: float, n: int
) -> Float[Array, "d d"]:
    U, inverse = mapped(X, W)
    errors = scale * (U @ text.T)
    softmax_residual(errors, y, scale / n)
    pull = errors @ text
    pull -= np.einsum("nd,nd->n", pull, U)[:, None] * U
    pull *= inverse
    return pull.T @ X
