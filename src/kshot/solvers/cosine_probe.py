"""CLAP's trajectory: momentum SGD on a cosine softmax pulled towards anchors (Silva-Rodríguez et al., 2024).

With U = W/|W| and R = (softmax(tau·X·Uᵀ) − Y)·tau/|b| the gradient of a batch is

    (RᵀX − (RᵀX·U)·U)/|w_c| + (2·l_c/C)·(w_c − a_c),

written out by hand: two matrix products a step and no other work that grows with the batch but the softmax.
Several problems of equal shape train together (first axis), which is what makes small ones cheap.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks, span_basis, squared_norms
from kshot.solvers.schedule import softmax_residual
from kshot.types import Array


def anchor_confidence(
    X: Float[Array, "M d"], y: Int[Array, " M"], text: Float[Array, "C d"], scale: float
) -> Float[Array, " C"]:
    """l_c: how much probability the text prototypes give class c on its own rows, on average."""
    from scipy.special import softmax

    own, scaled_text = np.empty(len(y), X.dtype), scale * text
    for block in row_blocks(len(y)):
        probability = softmax(X[block] @ scaled_text.T, axis=1)
        own[block] = probability[np.arange(len(probability)), y[block]]
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
    W, velocity, gradient = anchors.copy(), np.zeros_like(anchors), np.empty_like(anchors)
    pull = ((2 / anchors.shape[1]) * penalties)[:, :, None]
    anchor_pull = pull * anchors
    problem = np.arange(len(X))[:, None]
    rows, labels = X, y
    residual = np.empty((len(X), 0, anchors.shape[1]), X.dtype)
    inverse = _inverse_norms(W)
    directions = scale * inverse * W
    for rate in rates.tolist():
        chosen = next(steps)
        if chosen is not None:
            rows, labels = X[problem, chosen], y[problem, chosen]
        if residual.shape[1] != rows.shape[1]:
            residual = np.empty((len(X), rows.shape[1], anchors.shape[1]), X.dtype)
        np.matmul(rows, directions.swapaxes(1, 2), out=residual)
        softmax_residual(residual, labels, scale / rows.shape[1])
        np.matmul(residual.swapaxes(1, 2), rows, out=gradient)
        radial = np.einsum("bcd,bcd->bc", gradient, W)[:, :, None] * inverse**3
        gradient *= inverse
        velocity *= momentum
        velocity += gradient
        # The directions have been used; until the next ones, their memory takes the products of this step.
        velocity += np.multiply(W, pull - radial, out=directions)
        velocity -= anchor_pull
        W -= np.multiply(velocity, rate, out=directions)
        inverse = _inverse_norms(W)
        np.multiply(W, scale * inverse, out=directions)
    return W


def _inverse_norms(W: Float[Array, "B C d"]) -> Float[Array, "B C 1"]:
    return 1 / np.sqrt(squared_norms(W))[:, :, None]
