"""Multinomial logistic regression along a path of regularisation strengths, each warm-started by the last."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.folds import Fold
from kshot.solvers.rows import span_basis
from kshot.solvers.softmax import losses_and_residuals
from kshot.types import Array

# A fold starts next to its optimum, so few steps are enough.
MOST_STEPS = 100


def logistic_path(
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    n_classes: int,
    strengths: Float[Array, " L"],
    *,
    tolerance: float,
    max_iterations: int,
) -> Float[Array, "L C e"]:
    """Weights and bias (last column) minimising mean cross-entropy + |W|²/(2·N·strength), per strength.

    The strength is scikit-learn's C: larger means less regularisation; the bias is free. L-BFGS stops once
    the largest gradient has fallen to `tolerance` times its size at zero. Rows are centred first, which the
    free bias takes back exactly: features in a cone are otherwise badly conditioned. Few rows are turned into
    their own span, where the same problem is smaller.
    """
    from scipy.optimize import minimize

    centre = X.mean(axis=0)
    centred = X - centre
    basis = span_basis(centred)
    inside = centred if basis is None else centred @ basis
    softmax, size = SoftmaxLoss(inside, y), (n_classes, inside.shape[1] + 1)

    def objective(w: Float[Array, " P"], ridge: float) -> tuple[float, Float[Array, " P"]]:
        loss, gradient, _ = softmax.at(w.reshape(size), ridge)
        return loss, gradient.ravel()

    at = np.zeros(n_classes * (inside.shape[1] + 1))
    stop = tolerance * float(np.abs(objective(at, 0.0)[1]).max())
    path = np.empty((len(strengths), *size))
    for index, strength in enumerate(strengths.tolist()):
        at = minimize(
            objective,
            at,
            args=(1 / (len(X) * strength),),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": stop, "ftol": 0.0, "maxiter": max_iterations},
        ).x
        path[index] = at.reshape(size)
    weights = path[:, :, :-1] if basis is None else path[:, :, :-1] @ basis.T
    return np.concatenate([weights, path[:, :, -1:] - (weights @ centre)[:, :, None]], axis=2)


def left_out_accuracies(
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    strengths: Float[Array, " L"],
    path: Float[Array, "L C e"],
    folds: Iterable[Fold],
) -> Float[Array, " L"]:
    """Accuracy on the left-out rows of each fold, learnt from its kept ones, per strength.

    Each fold starts at `path`, learnt from all rows, and stops once the gradient, which the left-out rows cause, has
    fallen to a twentieth. Steps are scaled by the curvature of the loss: that of class c is about mean(p_c(1 − p_c))
    times the covariance, which is diagonal in its own axes.
    """
    centre = X.mean(axis=0)
    axes = _principal_axes(X - centre)
    rows, starts = (X - centre) @ axes, path[:, :, :-1] @ axes
    bias = path[:, :, -1] + path[:, :, :-1] @ centre
    hits, total = np.zeros(len(strengths)), 0
    for kept, scored in folds:
        loss, spread = SoftmaxLoss(rows[kept], y[kept]), np.mean(rows[kept].astype(np.float64) ** 2, axis=0)
        for index, strength in enumerate(strengths.tolist()):
            start = np.column_stack([starts[index], bias[index]])
            W = _descend(loss, start, 1 / (len(loss.y) * strength), spread)
            hits[index] += np.count_nonzero((rows[scored] @ W[:, :-1].T + W[:, -1]).argmax(axis=1) == y[scored])
        total += np.count_nonzero(scored)
    return hits / total


class SoftmaxLoss:
    """Mean cross-entropy of a linear head with a free bias, and ridge/2·|W|²."""

    def __init__(self, X: Float[Array, "N r"], y: Int[Array, " N"]):
        self.rows = np.concatenate([X, np.ones((len(X), 1), X.dtype)], axis=1)
        self.y = y

    def at(self, W: Float[Array, "C e"], ridge: float) -> tuple[float, Float[Array, "C e"], Float[Array, "N C"]]:
        """The loss, its gradient, and probabilities minus one-hot labels."""
        logits = self.rows @ W.T.astype(self.rows.dtype)
        losses = losses_and_residuals(logits, self.y)
        gradient = (logits.T @ self.rows).astype(np.float64) / len(self.y)
        gradient[:, :-1] += ridge * W[:, :-1]
        loss = np.mean(losses, dtype=np.float64) + ridge / 2 * np.sum(W[:, :-1] ** 2)
        return float(loss), gradient, logits


def _descend(
    softmax: SoftmaxLoss, start: Float[Array, "C e"], ridge: float, spread: Float[Array, " r"]
) -> Float[Array, "C e"]:
    """L-BFGS in units of the inverse curvature, until the largest gradient has fallen to a twentieth."""
    from scipy.optimize import OptimizeResult, minimize

    _, gradient, residual = softmax.at(start, ridge)
    stop = float(np.abs(gradient).max()) / 20
    # p(1 − p) of the own class as of the others: |p − onehot| times one minus itself.
    sure = (np.abs(residual) * (1 - np.abs(residual))).astype(np.float64).mean(axis=0)[:, None]
    unit = 1 / np.sqrt(np.column_stack([sure * spread + ridge, sure + np.finfo(np.float32).eps]))
    # scipy's first step has length one; this makes it the step that fits the curvature.
    unit *= max(float(np.linalg.norm(gradient * unit)), np.finfo(np.float64).tiny)
    largest = np.inf

    def objective(u: Float[Array, " P"]) -> tuple[float, Float[Array, " P"]]:
        nonlocal largest
        loss, gradient, _ = softmax.at(u.reshape(start.shape) * unit, ridge)
        largest = float(np.abs(gradient).max())
        return loss, (gradient * unit).ravel()

    def stop_early(intermediate_result: OptimizeResult) -> None:
        if largest <= stop:
            raise StopIteration

    options = {"gtol": 0.0, "ftol": 0.0, "maxiter": MOST_STEPS}
    begin = (start / unit).ravel()
    end = minimize(objective, begin, jac=True, method="L-BFGS-B", callback=stop_early, options=options).x
    return end.reshape(start.shape) * unit


def _principal_axes(centred: Float[Array, "N d"]) -> Float[Array, "d r"]:
    """Eigenvectors of the covariance, without those along which nothing varies."""
    values, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    return vectors[:, values > np.finfo(np.float32).eps * values[-1]].astype(centred.dtype)
