"""CLAP's objective minimised by a quasi-Newton method instead of 300 epochs of SGD; docs/gauss-probe.md.

The objective of weights W is the mean cross-entropy of scale·cos(x, w_c) plus (1/C)·sum_c l_c·|w_c − a_c|². Near the
anchors, whose norm is s, its second derivative is about

    (1/C)·(q·(scale/s)²·A + 2·l),   A = XᵀX/M,

with l the mean penalty and q the mean over rows of 1 − sum_c p_c². Dividing the axes of A by the root of that before
L-BFGS starts makes a dozen iterations do the work of thirty.
"""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks, span_basis, squared_norms
from kshot.solvers.softmax import losses_and_residuals
from kshot.types import Array

# q falls from up to 1 to near 0 on the way; only the speed depends on the value taken for all of it.
IMPURITY = 0.3
# L-BFGS ends earlier where the largest derivative has fallen to this share of its size at the anchors.
STILL = 1e-5


def fit_cosine_probe(
    X: Float[Array, "M d"],
    y: Int[Array, " M"],
    anchors: Float[Array, "C d"],
    penalties: Float[Array, " C"],
    *,
    scale: float,
    iterations: int,
    start: Float[Array, "C d"] | None = None,
) -> Float[Array, "C d"]:
    """Weights after so many L-BFGS iterations from `start`, or from the anchors; all in the span of the data."""
    from scipy.optimize import minimize

    axes, moments = _principal_axes(X, anchors)
    X, centre = X @ axes, (anchors @ axes).astype(np.float64)
    C = len(anchors)
    pull = (penalties / C).astype(np.float64)[:, None]
    anchor_square = float(squared_norms(centre).mean())
    curvature = (IMPURITY * scale**2 / anchor_square * moments + 2 * float(penalties.mean())) / C
    stretch = 1 / np.sqrt(np.maximum(curvature, np.finfo(X.dtype).eps * curvature.max()))

    def objective(v: Float[Array, " P"]) -> tuple[float, Float[Array, " P"]]:
        moved = stretch * v.reshape(C, -1)
        W = (centre + moved).astype(X.dtype)
        inverse = 1 / np.sqrt(squared_norms(W))[:, None]
        W *= inverse
        loss, gradient = _cross_entropy(X, y, W, scale)
        gradient -= np.einsum("cr,cr->c", gradient, W)[:, None] * W
        gradient *= (scale / len(X)) * inverse
        total = loss / len(X) + float(np.sum(pull * moved**2))
        return total, (stretch * (gradient + 2 * pull * moved)).ravel()

    still = STILL * float(np.abs(objective(np.zeros(centre.size))[1]).max())
    begin = np.zeros(centre.shape) if start is None else (start @ axes - centre) / stretch
    options = {"maxiter": iterations, "ftol": 0.0, "gtol": still}
    optimum = minimize(objective, begin.ravel(), jac=True, method="L-BFGS-B", options=options).x
    return (centre + stretch * optimum.reshape(C, -1)).astype(X.dtype) @ axes.T


def _cross_entropy(
    X: Float[Array, "M r"], y: Int[Array, " M"], directions: Float[Array, "C r"], scale: float
) -> tuple[float, Float[Array, "C r"]]:
    """The sum over rows and its derivative by the logits, carried back to the directions; blocks stay in the cache."""
    loss, gradient = 0.0, np.zeros_like(directions)
    scaled = (scale * directions).T
    for block in row_blocks(len(X)):
        residual = X[block] @ scaled
        loss += float(np.sum(losses_and_residuals(residual, y[block]), dtype=np.float64))
        gradient += residual.T @ X[block]
    return loss, gradient


def _principal_axes(
    X: Float[Array, "M d"], anchors: Float[Array, "C d"]
) -> tuple[Float[Array, "d r"], Float[Array, " r"]]:
    """The eigenvectors of XᵀX/M inside the span of rows and anchors, and its eigenvalues."""
    span = span_basis(X, anchors)
    inside = X if span is None else X @ span
    moments, turn = np.linalg.eigh((inside.T @ inside).astype(np.float64) / len(X))
    turn = turn.astype(X.dtype)
    return turn if span is None else span @ turn, np.maximum(moments, 0)
