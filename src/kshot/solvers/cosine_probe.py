"""CLAP's trajectory: momentum SGD on a cosine softmax pulled towards anchors (Silva-Rodríguez et al., 2024).

With U = W/|W| and R = (softmax(tau·X·Uᵀ) − Y)·tau/|b| the gradient of a batch is

    (RᵀX − (RᵀX·U)·U)/|w_c| + (2·l_c/C)·(w_c − a_c),

written out by hand: two matrix products a step and no other work that grows with the batch but the softmax.
Several problems of equal shape train together (first axis), which is what makes small ones cheap.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import squared_norms
from kshot.solvers.schedule import softmax_residual
from kshot.solvers.span import span_basis
from kshot.types import Array


def anchor_confidence(
    X: Float[Array, "M d"], y: Int[Array, " M"], text: Float[Array, "C d"], scale: float
) -> Float[Array, " C"]:
    """l_c: how much probability the text prototypes give class c on its own rows, on average."""
    logits = scale * (X @ text.T)
    logits -= logits.max(axis=1, keepdims=True)
    own = np.exp(logits[np.arange(len(y)), y]) / np.exp(logits, out=logits).sum(axis=1)
    counts = np.bincount(y, minlength=len(text))
    return (np.bincount(y, own, minlength=len(text)) / counts).astype(X.dtype)


def train_cosine_probe(
    X: Float[Array, "B M d"],
    y: Int[Array, "B M"],
    anchors: Float[Array, "B C d"],
    penalties: Float[Array, "B C"],
    steps: Iterator[Int[Array, "B b"] | None],
    rates: Float[Array, " T"],
    *,
    scale: float,
    momentum: float,
) -> Float[Array, "B C d"]:
    """Weights after len(rates) steps that start at the anchors."""
    basis = span_basis(X, anchors)
    if basis is None:
        return _train(X, y, anchors, penalties, steps, rates, scale, momentum)
    inside = _train(X @ basis, y, anchors @ basis, penalties, steps, rates, scale, momentum)
    return inside @ basis.swapaxes(1, 2)


def _train(
    X: Float[Array, "B M d"],
    y: Int[Array, "B M"],
    anchors: Float[Array, "B C d"],
    penalties: Float[Array, "B C"],
    steps: Iterator[Int[Array, "B b"] | None],
    rates: Float[Array, " T"],
    scale: float,
    momentum: float,
) -> Float[Array, "B C d"]:
    W, velocity = anchors.copy(), np.zeros_like(anchors)
    gradient, scratch = np.empty_like(anchors), np.empty_like(anchors)
    pull = (2 / anchors.shape[1]) * penalties
    anchor_pull = pull[:, :, None] * anchors
    problem = np.arange(len(X))[:, None]
    residual = np.empty((0, 0, 0), X.dtype)
    rows, labels = X, y
    for rate in rates.tolist():
        chosen = next(steps)
        if chosen is not None:
            rows, labels = X[problem, chosen], y[problem, chosen]
        if residual.shape[1] != rows.shape[1]:
            residual = np.empty((len(X), rows.shape[1], anchors.shape[1]), X.dtype)
        inverse = 1 / np.sqrt(squared_norms(W))
        directions = np.multiply(W, (scale * inverse)[:, :, None], out=scratch)
        np.matmul(rows, directions.swapaxes(1, 2), out=residual)
        softmax_residual(residual, labels, scale / rows.shape[1])
        np.matmul(residual.swapaxes(1, 2), rows, out=gradient)
        radial = np.einsum("bcd,bcd->bc", gradient, W) * inverse**3
        gradient *= inverse[:, :, None]
        velocity *= momentum
        velocity += gradient
        velocity += np.multiply(W, (pull - radial)[:, :, None], out=scratch)
        velocity -= anchor_pull
        W -= np.multiply(velocity, rate, out=scratch)
    return W
