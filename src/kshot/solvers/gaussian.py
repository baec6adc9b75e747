"""Gaussian discriminant analysis with one shared, shrunk covariance (Wang et al., 2024, Eqs. 4–8).

With Z the rows minus their class means, M = ZᵀZ + tr(ZᵀZ)/(N−1)·I and P = d·M⁻¹, the generative branch
scores x·P·mu_c − ½ mu_c·P·mu_c − log C. M is symmetric positive definite, so a Cholesky factor replaces the
pseudo-inverse of the official code.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks
from kshot.solvers.weight_sweep import hits_by_weight
from kshot.types import Array


class GaussianBranch(NamedTuple):
    """Class weights P·mu_c, biases, and the precision P (zero where the shots do not vary)."""

    weights: Float[Array, "C d"]
    bias: Float[Array, " C"]
    precision: Float[Array, "d d"]


def fit_gaussian(X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"]) -> GaussianBranch:
    """Shots that do not vary (K = 1, or copies of one picture) give P = 0: the branch says nothing."""
    precision = _precision(X, y, means)
    weights = means @ precision
    bias = -np.log(len(means)) - np.einsum("cd,cd->c", means, weights) / 2
    return GaussianBranch(weights, bias.astype(X.dtype), precision)


def _precision(
    X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"]
) -> Float[Array, "d d"]:
    from scipy.linalg import cho_factor, cho_solve

    n, d = X.shape
    M = np.zeros((d, d))
    for block in row_blocks(n):
        Z = X[block] - means[y[block]]
        M += Z.T @ Z
    trace = float(np.trace(M))
    rounding = n * (8 * np.finfo(X.dtype).eps) ** 2
    if trace <= rounding:
        return np.zeros((d, d), X.dtype)
    M[np.diag_indices(d)] += trace / (n - 1)
    inverse = cho_solve(cho_factor(M, overwrite_a=True), d * np.eye(d))
    return inverse.astype(X.dtype)


def alpha_hits(
    X: Float[Array, "n d"],
    y: Int[Array, " n"],
    scaled_text: Float[Array, "C d"],
    branch: GaussianBranch,
    alphas: Float[Array, " L"],
    held_out_means: Float[Array, "n d"] | None = None,
) -> Int[Array, " L"]:
    """Rows that text + alpha·branch classifies correctly, for every alpha.

    `held_out_means` replaces, for each row, the mean of its own class: leave-one-out with P kept.
    """
    hits = np.zeros(len(alphas), np.int64)
    scratch = np.empty((2, next(row_blocks(len(X))).stop, len(scaled_text)), X.dtype)
    for here in row_blocks(len(X)):
        rows = X[here]
        base, extra = scratch[:, : len(rows)]
        np.matmul(rows, scaled_text.T, out=base)
        np.matmul(rows, branch.weights.T, out=extra)
        extra += branch.bias
        if held_out_means is not None:
            own = held_out_means[here]
            pulled = own @ branch.precision
            generative = np.einsum("nd,nd->n", rows - own / 2, pulled)
            extra[np.arange(len(rows)), y[here]] = generative - np.log(len(branch.bias))
        hits += hits_by_weight(base, extra, alphas, y[here])
    return hits
