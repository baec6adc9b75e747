"""CLAP's trajectory: momentum SGD on a cosine softmax pulled towards anchors (Silva-Rodríguez et al., 2024).

With U = W/|W| and R = (softmax(tau·X·Uᵀ) − Y)·tau/|b| the gradient of a batch is

    (RᵀX − (RᵀX·U)·U)/|w_c| + (2·l_c/C)·(w_c − a_c),

written out by hand: two matrix products a step and no other work that grows with the batch but the softmax.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks, span_basis, squared_norms
from kshot.solvers.training import softmax_residual, training_steps
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
    X: Float[Array, "M d"],
    y: Int[Array, " M"],
    anchors: Float[Array, "C d"],
    penalties: Float[Array, " C"],
    steps: Iterator[Int[Array, " b"] | None],
    rates: Float[Array, " T"],
    *,
    scale: float,
    momentum: float,
) -> Float[Array, "C d"]:
    """Weights after len(rates) steps that start at the anchors."""
    basis = span_basis(X, anchors)
    if basis is not None:
        X, anchors = X @ basis, anchors @ basis
    W, velocity, gradient = anchors.copy(), np.zeros_like(anchors), np.empty_like(anchors)
    pull = ((2 / len(anchors)) * penalties)[:, None]
    anchor_pull = pull * anchors
    residual = np.empty((0, len(anchors)), X.dtype)
    inverse = _inverse_norms(W)
    directions = scale * inverse * W
    for rows, labels, rate in training_steps([X], y, steps, rates):
        if len(residual) != len(rows):
            residual = np.empty((len(rows), len(anchors)), X.dtype)
        np.matmul(rows, directions.T, out=residual)
        softmax_residual(residual, labels, scale / len(rows))
        np.matmul(residual.T, rows, out=gradient)
        radial = np.einsum("cd,cd->c", gradient, W)[:, None] * inverse**3
        gradient *= inverse
        velocity *= momentum
        velocity += gradient
        # The directions have been used; until the next ones, their memory takes the products of this step.
        velocity += np.multiply(W, pull - radial, out=directions)
        velocity -= anchor_pull
        W -= np.multiply(velocity, rate, out=directions)
        inverse = _inverse_norms(W)
        np.multiply(W, scale * inverse, out=directions)
    return W if basis is None else W @ basis.T


def _inverse_norms(W: Float[Array, "C d"]) -> Float[Array, "C 1"]:
    return 1 / np.sqrt(squared_norms(W))[:, None]
