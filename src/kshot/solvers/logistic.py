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
    starts: Float[Array, "L C e"] | None = None,
) -> Float[Array, "L C e"]:
    """Weights and bias (last column) minimising mean cross-entropy + |W|²/(2·N·strength), per strength.

    The strength is scikit-learn's C: larger means less regularisation; the bias is free. L-BFGS in float64,
    as its line search cannot see the last steps in float32.
    """
    from scipy.optimize import minimize

    n, d = X.shape
    rows = np.concatenate([X, np.ones((n, 1), X.dtype)], axis=1).astype(np.float64)
    here = np.arange(n)
    flat = np.zeros(n_classes * (d + 1))

    def objective(w: Float[Array, " P"], ridge: float) -> tuple[float, Float[Array, " P"]]:
        W = w.reshape(n_classes, d + 1)
        logits = rows @ W.T
        logits -= logits.max(axis=1, keepdims=True)
        own = logits[here, y]
        np.exp(logits, out=logits)
        total = logits.sum(axis=1)
        logits *= (1 / (n * total))[:, None]
        logits[here, y] -= 1 / n
        gradient = logits.T @ rows
        penalised = W[:, :-1]
        gradient[:, :-1] += ridge * penalised
        loss = float(np.mean(np.log(total) - own) + ridge / 2 * np.sum(penalised**2))
        return loss, gradient.ravel()

    found = []
    for index, strength in enumerate(strengths.tolist()):
        start = flat if starts is None else starts[index].ravel()
        result = minimize(
            objective,
            start,
            args=(1 / (n * strength),),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": tolerance, "ftol": 0.0, "maxiter": max_iterations},
        )
        flat = result.x
        found.append(flat.reshape(n_classes, d + 1))
    return np.stack(found)
