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

# The update of a class passes over five arrays; blocks of classes this large keep them in the cache.
BLOCK_BYTES = 128 * 1024


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
    W, velocity, gradient = anchors.copy(), np.zeros_like(anchors), np.empty_like(anchors)
    directions = np.empty_like(anchors)
    pull = ((2 / anchors.shape[1]) * penalties)[:, :, None]
    anchor_pull = pull * anchors
    block = max(1, BLOCK_BYTES // (W.itemsize * W.shape[0] * W.shape[2]))
    blocks = [np.s_[:, low : low + block] for low in range(0, W.shape[1], block)]
    problem = np.arange(len(X))[:, None]
    rows, labels = X, y
    residual = np.empty((len(X), 0, anchors.shape[1]), X.dtype)
    inverse = np.empty((*W.shape[:2], 1), W.dtype)
    for part in blocks:
        _point(W[part], inverse[part], directions[part], scale)
    for rate in rates.tolist():
        chosen = next(steps)
        if chosen is not None:
            rows, labels = X[problem, chosen], y[problem, chosen]
        if residual.shape[1] != rows.shape[1]:
            residual = np.empty((len(X), rows.shape[1], anchors.shape[1]), X.dtype)
        np.matmul(rows, directions.swapaxes(1, 2), out=residual)
        softmax_residual(residual, labels, scale / rows.shape[1])
        np.matmul(residual.swapaxes(1, 2), rows, out=gradient)
        for part in blocks:
            w, v, g, inv, scratch = W[part], velocity[part], gradient[part], inverse[part], directions[part]
            radial = np.einsum("bcd,bcd->bc", g, w)[:, :, None] * inv**3
            g *= inv
            v *= momentum
            v += g
            v += np.multiply(w, pull[part] - radial, out=scratch)
            v -= anchor_pull[part]
            w -= np.multiply(v, rate, out=scratch)
            _point(w, inv, scratch, scale)
    return W


def _point(
    W: Float[Array, "B c d"], inverse: Float[Array, "B c 1"], directions: Float[Array, "B c d"], scale: float
) -> None:
    """Write 1/|w| and scale·w/|w|."""
    inverse[:, :, 0] = 1 / np.sqrt(squared_norms(W))
    np.multiply(W, scale * inverse, out=directions)
