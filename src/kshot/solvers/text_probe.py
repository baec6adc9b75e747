"""Heads that move text: LP++'s weights on text, SS-Text's shifted prototypes, TaskRes's residuals.

SS-Text's closed form: text prototypes moved by the sums of the shots, and their repulsion.

Silva-Rodríguez et al. solve min over p_c of −mean_i <x_i, p_y>·tau + ½·sum_c lambda_c·|p_c − t_c|², which is
p_c = t_c + tau·S_c/(N·lambda_c) with S_c the sum of the class's shots.

TaskRes' trajectory (Yu et al., 2023): Adam on a residual added to the text prototypes.

With w_c = a_c + alpha·x_c, U = W/|W|, S = X·Uᵀ and R = tau·(softmax(tau·S) − Y)/|b| the gradient of x_c is
alpha·(RᵀX − (sum_i R_ic S_ic)·U_c)/|w_c|, and as sum_i R_ic S_ic = (RᵀX)_c·U_c no product with S is needed.

LP++'s trajectory: a linear probe plus learnt class weights on the text logits (Huang et al., 2024).

logits = F·Wᵀ + b + alpha ⊙ (F·Tᵀ) = F·(W + alpha·T)ᵀ + b, so one product gives all three terms; and as
g_W = RᵀF, the gradient of alpha_c is g_W,c·t_c: no text logits are kept. The bias is a column of ones.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import class_counts, class_sums, row_blocks, span_basis, squared_norms
from kshot.solvers.training import adam, softmax_residual, training_steps
from kshot.types import Array

SMALLEST_PENALTY = 1e-3


def penalties(y: Int[Array, " N"], n_classes: int, *, own_count: bool) -> Float[Array, " C"]:
    """lambda_c: 1/N for all classes, or 1/n_c, which is infinite for a class without shots; at least 1e-3."""
    counts = class_counts(y, n_classes) if own_count else np.full(n_classes, len(y))
    with np.errstate(divide="ignore"):
        return np.maximum(1 / counts, SMALLEST_PENALTY)


def pulled_prototypes(
    X: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"], penalty: Float[Array, " C"], scale: float
) -> Float[Array, "C d"]:
    weights = (scale / (len(y) * penalty)).astype(text.dtype)
    return text + weights[:, None] * class_sums(X, y, len(text))


def repelled(prototypes: Float[Array, "C d"]) -> tuple[Float[Array, "C d"], Float[Array, " C"]]:
    """p_c − unit(2·p_c − mean p), and the lengths |2·p_c − mean p|.

    With p_c = m + r_c the result is m(1 − 1/n_c) + r_c(1 − 2/n_c), n_c that length: below 2 the part that
    belongs to the class changes sign, and the classifier is turned over.
    """
    directions = 2 * prototypes - prototypes.mean(axis=0)
    lengths = np.sqrt(squared_norms(directions))
    return prototypes - directions / np.where(lengths > 0, lengths, 1)[:, None], lengths


def train_residual(
    views: Sequence[Float[Array, "N d"]],
    y: Int[Array, " N"],
    base: Float[Array, "C d"],
    steps: Iterator[Int[Array, " b"] | None],
    rates: Float[Array, " T"],
    *,
    steps_per_epoch: int,
    alpha: float,
    scale: float,
    weight_decay: float,
) -> Iterator[Float[Array, "C d"]]:
    """The residual after every step, always the same array; epoch e learns from view e mod V."""
    residual, gradient = np.zeros_like(base), np.empty_like(base)
    update = adam([residual], weight_decay=weight_decay)
    directions, scratch = np.empty_like(base), np.empty_like(base)
    for X, labels, rate in training_steps(views, y, steps, rates, steps_per_epoch):
        np.multiply(residual, alpha, out=directions)
        directions += base
        inverse = 1 / np.sqrt(squared_norms(directions))[:, None]
        directions *= inverse
        errors = X @ np.multiply(directions, scale, out=scratch).T
        softmax_residual(errors, labels, scale / len(labels))
        np.matmul(errors.T, X, out=gradient)
        radial = np.einsum("cd,cd->c", gradient, directions)[:, None]
        gradient -= np.multiply(directions, radial, out=scratch)
        gradient *= alpha * inverse
        update([gradient], rate)
        yield residual


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
