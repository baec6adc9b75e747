"""ProKeR's kernel ridge regression around the zero-shot cosines (Bendou et al., 2025), and its whole path.

With k(a, b) = exp(−beta(1 − <a, b>)) and residuals R = Y − X·Tᵀ the coefficients solve (K/lambda + I)·A = R and a
row scores x·Tᵀ + k(x, X)·A. As coded there is no 1/lambda before the prediction: it is lambda times the ridge
regression's, so that lambda is the weight of the shots as well.

One eigendecomposition K = V·D·Vᵀ serves every lambda. It also gives exact held-out scores: with G = K + lambda·I
and a = G⁻¹·R, ridge regression without the rows I predicts R_I − (G⁻¹_II)⁻¹·a_I at them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks
from kshot.types import Array

# D&C is faster but needs two more copies of the matrix; from here on memory is what counts.
LARGE = 6000


def kernel(A: Float[Array, "n d"], B: Float[Array, "N d"], beta: float) -> Float[Array, "n N"]:
    """exp(−beta(1 − <a, b>)), in one array."""
    K = A @ B.T
    K -= 1
    K *= beta
    return np.exp(K, out=K)


def residuals(X: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"]) -> Float[Array, "N C"]:
    """One-hot labels minus the zero-shot cosines."""
    R = -(X @ text.T)
    R[np.arange(len(y)), y] += 1
    return R


def fit_kernel_ridge(X: Float[Array, "N d"], R: Float[Array, "N C"], beta: float, ridge: float) -> Float[Array, "N C"]:
    """(K/lambda + I)⁻¹·R by one Cholesky factor for all classes."""
    from scipy.linalg import cho_factor, cho_solve

    K = kernel(X, X, beta)
    K /= ridge
    K[np.diag_indices(len(K))] += 1
    # LAPACK wants columns: the transpose of a symmetric matrix is one without a copy.
    factor = cho_factor(K.T, lower=True, overwrite_a=True, check_finite=False)
    return np.ascontiguousarray(cho_solve(factor, R, check_finite=False))


def kernel_scores(
    Q: Float[Array, "n d"],
    X: Float[Array, "N d"],
    text: Float[Array, "C d"],
    coefficients: Float[Array, "N C"],
    beta: float,
) -> Float[Array, "n C"]:
    scores = Q @ text.T
    for here in row_blocks(len(Q)):
        scores[here] += kernel(Q[here], X, beta) @ coefficients
    return scores


class Spectrum(NamedTuple):
    """K = V·D·Vᵀ at one beta, and Vᵀ·R."""

    values: Float[Array, " N"]
    vectors: Float[Array, "N N"]
    targets: Float[Array, "N C"]

    @classmethod
    def of(cls, X: Float[Array, "N d"], R: Float[Array, "N C"], beta: float) -> "Spectrum":
        from scipy.linalg import eigh

        driver = "evd" if len(X) < LARGE else "evr"
        K = kernel(X, X, beta).T
        values, vectors = eigh(K, overwrite_a=True, check_finite=False, driver=driver)
        return cls(np.maximum(values, 0), vectors, vectors.T @ R)

    def coefficients(self, ridge: float) -> Float[Array, "N C"]:
        """Vᵀ·A at one lambda."""
        return self.targets / (self.values / ridge + 1)[:, None]

    def held_out(self, R: Float[Array, "N C"], groups: Int[Array, "G g"], ridge: float) -> Float[Array, "G g C"]:
        """The correction k(x, X)·A at each group's rows, of the coefficients fitted without that group."""
        inverse = (1 / (self.values + ridge)).astype(R.dtype)
        ridge_coefficients = self.vectors @ (self.targets * inverse[:, None])
        part = self.vectors[groups]
        blocks = (part * inverse) @ part.swapaxes(1, 2)
        return ridge * (R[groups] - np.linalg.solve(blocks, ridge_coefficients[groups]))


def path_scores(
    Q: Float[Array, "n d"],
    X: Float[Array, "N d"],
    R: Float[Array, "N C"],
    text: Float[Array, "C d"],
    betas: Sequence[float],
    ridges: Sequence[float],
) -> Iterator[Float[Array, "n C"]]:
    """Scores of the queries at every (beta, lambda), beta outermost; each is overwritten by the next."""
    base = Q @ text.T
    scores = np.empty_like(base)
    for beta in betas:
        spectrum = Spectrum.of(X, R, beta)
        turned = np.concatenate([kernel(Q[b], X, beta) @ spectrum.vectors for b in row_blocks(len(Q))])
        kept, shares = skeleton(spectrum.values, np.array(ridges), X.dtype)
        corrections = np.stack([turned @ spectrum.coefficients(ridges[index]) for index in kept])
        for share in shares:
            np.matmul(share, corrections.reshape(len(kept), -1), out=scores.reshape(-1))
            scores += base
            yield scores


def skeleton(
    values: Float[Array, " N"], ridges: Float[Array, " L"], dtype: np.dtype
) -> tuple[list[int], Float[Array, "L r"]]:
    """A few lambdas whose corrections combine into those of all, to rounding, and the combinations.

    The correction is linear in the factors 1/(D/lambda + 1), and as functions of lambda these have a numerical rank
    of a dozen (a Cauchy matrix): pivoted QR picks the lambdas and gives weights of the order of one.
    """
    from scipy.linalg import qr, solve_triangular

    factors = 1 / (values.astype(np.float64) / ridges[:, None] + 1)
    decomposed: Any = qr(factors.T, mode="r", pivoting=True, check_finite=False)
    triangle, order = decomposed
    size = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(size > max(np.finfo(dtype).eps / 16, 1e-14) * size[0]))
    shares = np.empty((len(ridges), rank))
    shares[order[:rank]] = np.eye(rank)
    shares[order[rank:]] = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank : len(ridges)]).T
    return order[:rank].tolist(), shares.astype(dtype)
