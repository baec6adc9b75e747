"""Multinomial logistic regression along a path of regularisation strengths, each warm-started by the last."""

import numpy as np
from jaxtyping import Float, Int

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
    free bias takes back exactly: features in a cone are otherwise badly conditioned.
    """
    from scipy.optimize import minimize

    n, d = X.shape
    centre = X.mean(axis=0)
    rows = np.concatenate([X - centre, np.ones((n, 1), X.dtype)], axis=1)
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
    path[:, :, -1] -= path[:, :, :-1] @ centre
    return path
