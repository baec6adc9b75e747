"""LP++'s trajectory: a linear probe plus learnt class weights on the text logits (Huang et al., 2024).

logits = F·Wᵀ + b + alpha ⊙ (F·Tᵀ) = F·(W + alpha·T)ᵀ + b, so one product gives all three terms; and as
g_W = RᵀF, the gradient of alpha_c is g_W,c·t_c: no text logits are kept. The bias is a column of ones.
"""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks, span_basis, squared_norms
from kshot.solvers.training import softmax_residual
from kshot.types import Array


def step_sizes(
    X: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"], alpha_factor: float
) -> tuple[float, float, float]:
    """(lr_w, lr_alpha, the initial alpha), from Lipschitz bounds on the shots alone."""
    n, d = X.shape
    gram = X @ X.T if n < d else X.T @ X
    largest = np.linalg.eigvalsh(gram.astype(np.float64))[-1]
    energy = np.zeros(len(text))
    for block in row_blocks(n):
        energy += squared_norms((X[block] @ text.T).T)
    own = np.einsum("nd,nd->n", X, text[y])
    class_mean = np.bincount(y, own, minlength=len(text)) / np.bincount(y, minlength=len(text))
    return float(4 * n / largest), float(n / (4 * energy.max())), float(alpha_factor * class_mean.mean())


def train_text_probe(
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    text: Float[Array, "C d"],
    start: Float[Array, "C d"],
    bias: Float[Array, " C"] | None,
    alpha: Float[Array, " C"],
    lr_w: float,
    lr_alpha: float,
    *,
    epochs: int,
    momentum: float,
    alpha_every: int,
) -> tuple[Float[Array, "C d"], Float[Array, " C"], Float[Array, " C"]]:
    """(W, b, alpha) after full-batch momentum SGD from `start`; `bias=None` trains without one."""
    basis = span_basis(X, text)
    if basis is not None:
        X, text, start = X @ basis, text @ basis, start @ basis
    if bias is not None:
        X = np.concatenate([X, np.ones_like(X[:, :1])], axis=1)
        text = np.concatenate([text, np.zeros_like(text[:, :1])], axis=1)
        start = np.concatenate([start, bias[:, None]], axis=1)
    n = len(X)
    W, alpha = start.copy(), alpha.copy()
    velocity, gradient, scratch = np.zeros_like(W), np.empty_like(W), np.empty_like(W)
    residual = np.empty((next(row_blocks(n)).stop, len(W)), X.dtype)
    rate_w, rate_alpha = X.dtype.type(lr_w), X.dtype.type(lr_alpha)
    alpha_gradient = np.zeros_like(alpha)
    for epoch in range(1, epochs + 1):
        combined = np.multiply(text, alpha[:, None], out=scratch)
        combined += W
        for block in row_blocks(n):
            rows = X[block]
            part = residual[: len(rows)]
            np.matmul(rows, combined.T, out=part)
            softmax_residual(part, y[block], 1 / n)
            if block.start == 0:
                np.matmul(part.T, rows, out=gradient)
            else:
                gradient += part.T @ rows
        # The official code never clears alpha's gradient, and that sum is what moves alpha.
        alpha_gradient += np.einsum("cd,cd->c", gradient, text)
        velocity *= momentum
        velocity += gradient
        W -= np.multiply(velocity, rate_w, out=scratch)
        if epoch % alpha_every == 0:
            alpha -= rate_alpha * alpha_gradient
    W, bias = (W, np.zeros_like(alpha)) if bias is None else (W[:, :-1], W[:, -1].copy())
    return W if basis is None else W @ basis.T, bias, alpha
