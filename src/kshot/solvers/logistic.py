"""Multinomial logistic regression along a path of regularisation strengths, each warm-started by the last."""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import span_basis
from kshot.types import Array


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
    centre = X.mean(axis=0)
    centred = X - centre
    basis = span_basis(centred)
    inside = centred if basis is None else centred @ basis
    path = _path(inside, y, n_classes, strengths, tolerance, max_iterations)
    weights = path[:, :, :-1] if basis is None else path[:, :, :-1] @ basis.T
    return np.concatenate([weights, path[:, :, -1:] - (weights @ centre)[:, :, None]], axis=2)


def _path(
    X: Float[Array, "N r"],
    y: Int[Array, " N"],
    n_classes: int,
    strengths: Float[Array, " L"],
    tolerance: float,
    max_iterations: int,
) -> Float[Array, "L C e"]:
    from scipy.optimize import minimize

    n, d = X.shape
    rows = np.concatenate([X, np.ones((n, 1), X.dtype)], axis=1)
    here = np.arange(n)

    def objective(w: Float[Array, " P"], ridge: float) -> tuple[float, Float[Array, " P"]]:
        W = w.reshape(n_classes, d + 1)
        logits = rows @ W.T.astype(X.dtype)
        logits -= logits.max(axis=1, keepdims=True)
        own = logits[here, y]
        np.exp(logits, out=logits)
        total = logits.sum(axis=1)
        logits *= (1 / total)[:, None]
        logits[here, y] -= 1
        gradient = (logits.T @ rows).astype(np.float64) / n
        gradient[:, :-1] += ridge * W[:, :-1]
        loss = np.mean(np.log(total) - own, dtype=np.float64) + ridge / 2 * np.sum(W[:, :-1] ** 2)
        return float(loss), gradient.ravel()

    at = np.zeros(n_classes * (d + 1))
    stop = tolerance * float(np.abs(objective(at, 0.0)[1]).max())
    path = np.empty((len(strengths), n_classes, d + 1))
    for index, strength in enumerate(strengths.tolist()):
        at = minimize(
            objective,
            at,
            args=(1 / (n * strength),),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": stop, "ftol": 0.0, "maxiter": max_iterations},
        ).x
        path[index] = at.reshape(n_classes, d + 1)
    return path
