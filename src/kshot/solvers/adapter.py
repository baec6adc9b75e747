"""CLIP-Adapter's bottleneck (Gao et al., 2024): A(x) = relu(W2·relu(W1·x)), blended into the feature.

The feature is unit(r·A(x) + (1−r)·x) and the logits are scale·feature·tᵀ; the gradient is written by hand.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks, squared_norms
from kshot.solvers.softmax import exponentials
from kshot.solvers.training import Update, adam, softmax_residual, training_steps
from kshot.types import Array


class Adapter(NamedTuple):
    """W1 (h, d) and W2 (d, h), no biases."""

    down: Float[Array, "h d"]
    up: Float[Array, "d h"]


def initial_adapter(dimension: int, reduction: int, seed: int, dtype: np.dtype) -> Adapter:
    """uniform(±1/sqrt fan_in) for both layers."""
    hidden = max(1, dimension // reduction)
    rng = np.random.default_rng(seed)
    down = rng.uniform(-1, 1, (hidden, dimension)) / np.sqrt(dimension)
    up = rng.uniform(-1, 1, (dimension, hidden)) / np.sqrt(hidden)
    return Adapter(down.astype(dtype), up.astype(dtype))


def adapt(adapter: Adapter, X: Float[Array, "n d"]) -> Float[Array, "n d"]:
    return np.maximum(np.maximum(X @ adapter.down.T, 0) @ adapter.up.T, 0)


def blended_feature(
    adapted: Float[Array, "n d"], X: Float[Array, "n d"], ratio: float
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """unit(r·A(x) + (1−r)·x) and the inverse length before it; a blend of length zero stays zero."""
    blend = ratio * adapted + (1 - ratio) * X
    norms = np.sqrt(squared_norms(blend))
    inverse = np.where(norms > 0, 1 / np.where(norms > 0, norms, 1), 0).astype(X.dtype)
    return blend * inverse[:, None], inverse


def gradients(
    adapter: Adapter, X: Float[Array, "b d"], y: Int[Array, " b"], text: Float[Array, "C d"], ratio: float, scale: float
) -> tuple[Float[Array, "h d"], Float[Array, "d h"]]:
    """Gradients of the mean cross-entropy with respect to (down, up)."""
    hidden = np.maximum(X @ adapter.down.T, 0)
    adapted = np.maximum(hidden @ adapter.up.T, 0)
    feature, inverse = blended_feature(adapted, X, ratio)
    residual = scale * (feature @ text.T)
    softmax_residual(residual, y, scale / len(y))
    to_feature = residual @ text
    radial = np.einsum("nd,nd->n", to_feature, feature)[:, None]
    to_adapted = (to_feature - radial * feature) * (ratio * inverse)[:, None]
    to_adapted *= adapted > 0
    to_hidden = to_adapted @ adapter.up
    to_hidden *= hidden > 0
    return to_hidden.T @ X, to_adapted.T @ hidden


def train_adapter(
    adapter: Adapter,
    X: Float[Array, "M d"],
    y: Int[Array, " M"],
    text: Float[Array, "C d"],
    steps: Iterator[Int[Array, " b"] | None],
    rates: Float[Array, " T"],
    update: Update,
    *,
    ratio: float,
    scale: float,
) -> None:
    """Change the adapter in place; `update` must have been made for its two arrays."""
    for rows, labels, rate in training_steps([X], y, steps, rates):
        update(gradients(adapter, rows, labels, text, ratio, scale), rate)


def ratio_losses(
    adapted: Float[Array, "n d"],
    X: Float[Array, "n d"],
    y: Int[Array, " n"],
    text: Float[Array, "C d"],
    ratios: Float[Array, " L"],
    scale: float,
) -> Float[Array, " L"]:
    """Mean cross-entropy at every ratio; one product for each branch serves them all."""
    a, x = adapted @ text.T, X @ text.T
    aa, ax, xx = squared_norms(adapted), np.einsum("nd,nd->n", adapted, X), squared_norms(X)
    losses = np.empty(len(ratios))
    for index, r in enumerate(ratios.tolist()):
        squared = r * r * aa + 2 * r * (1 - r) * ax + (1 - r) ** 2 * xx
        inverse = np.where(squared > 0, 1 / np.sqrt(np.where(squared > 0, squared, 1)), 0).astype(X.dtype)
        logits = (scale * inverse)[:, None] * (r * a + (1 - r) * x)
        losses[index] = np.mean(exponentials(logits, y)[0])
    return losses


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
    """RLA (Fahes et al., 2024): a linear map held near the identity, trained by full-batch Adam.

    With F = X·Wᵀ, u = f/|f|, S = U·Tᵀ and R = tau·(softmax(tau·S) − Y)/N the gradient of the mean cross-entropy is
    dFᵀX with dF_i = (R_i·T − (R_i·S_i)·u_i)/|f_i|; the penalty lambda·|W − I|² adds 2·lambda·(W − I).
    W after every epoch, always the same array; epoch e learns from view (e + 1) mod V.
    """
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
