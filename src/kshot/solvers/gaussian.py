"""Gaussian discriminant analysis with one shared, shrunk covariance (Wang et al., 2024, Eqs. 4–8).

With Z the rows minus their class means, M = ZᵀZ + tr(ZᵀZ)/(N−1)·I and P = d·M⁻¹, the generative branch
scores x·P·mu_c − ½ mu_c·P·mu_c − log C. M is symmetric positive definite, so a Cholesky factor replaces the
pseudo-inverse of the official code; with fewer shots than dimensions it is the factor of their Gram matrix
(Woodbury's identity).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.ratio_sweep import hits_by_weight
from kshot.solvers.rows import row_blocks
from kshot.types import Array


class Precision(NamedTuple):
    """P is `matrix` itself or, where there is a scale, scale·(I − AᵀA) with A = `matrix`."""

    matrix: Float[Array, "r d"]
    scale: float | None = None

    def times(self, rows: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """rows·P."""
        if self.scale is None:
            return rows @ self.matrix
        return (rows - rows @ self.matrix.T @ self.matrix) * rows.dtype.type(self.scale)


class GaussianBranch(NamedTuple):
    """Class means mu_c, weights P·mu_c, biases, and the precision P (zero where the shots do not vary)."""

    means: Float[Array, "C d"]
    weights: Float[Array, "C d"]
    bias: Float[Array, " C"]
    precision: Precision


def fit_gaussian(X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"]) -> GaussianBranch:
    """Fit the branch; where shots do not vary (K = 1, or copies of one picture) P is 0."""
    precision = _precision(X, y, means)
    weights = precision.times(means)
    bias = -np.log(len(means)) - np.einsum("cd,cd->c", means, weights) / 2
    return GaussianBranch(means, weights, bias.astype(X.dtype), precision)


def _precision(X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"]) -> Precision:
    from scipy.linalg import cho_factor, cho_solve

    n, d = X.shape
    if n < d:
        return _precision_of_few(X - means[y])
    scatter = np.zeros((d, d))
    for block in row_blocks(n):
        Z = X[block] - means[y[block]]
        scatter += Z.T @ Z
    if not _add_ridge(scatter, n, X.dtype):
        return Precision(X[:0], 0.0)
    return Precision(cho_solve(cho_factor(scatter, overwrite_a=True), d * np.eye(d)).astype(X.dtype))


def _precision_of_few(Z: Float[Array, "N d"]) -> Precision:
    """P = (d/ridge)·(I − Zᵀ(ZZᵀ + ridge·I)⁻¹Z): a factor with a row per shot, not per dimension."""
    from scipy.linalg import cholesky, solve_triangular

    gram = (Z @ Z.T).astype(np.float64)
    ridge = _add_ridge(gram, len(Z), Z.dtype)
    if not ridge:
        return Precision(Z[:0], 0.0)
    A = solve_triangular(cholesky(gram, lower=True), Z, lower=True)
    return Precision(A.astype(Z.dtype), Z.shape[1] / ridge)


def _add_ridge(gram: Float[Array, "r r"], n: int, dtype: np.dtype) -> float:
    """Add tr/(N−1) to the diagonal and return it; 0, and nothing added, where the trace is only rounding."""
    trace = float(np.trace(gram))
    if trace <= n * (8 * np.finfo(dtype).eps) ** 2:
        return 0.0
    ridge = trace / (n - 1)
    gram[np.diag_indices(len(gram))] += ridge
    return ridge


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
            pulled = branch.precision.times(own)
            generative = np.einsum("nd,nd->n", rows - own / 2, pulled)
            extra[np.arange(len(rows)), y[here]] = generative - np.log(len(branch.bias))
        hits += hits_by_weight(base, extra, alphas, y[here])
    return hits
