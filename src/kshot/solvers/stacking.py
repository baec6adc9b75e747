"""Weights of several heads by the likelihood of shots that none of them has seen (stacking, Wolpert 1992)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.types import Array

# e^±7: from probabilities that hardly differ between classes to the certainty of single-precision scores.
LARGEST_LOG = 7.0


class Stacked(NamedTuple):
    """A weight for each head, and how much their sum tells about the class, in nats per shot."""

    weights: Float[Array, " B"]
    information: float


class ScalePrior(NamedTuple):
    """What is known of the common scale before any shot judges: the mean of log w_b is Gaussian."""

    centre: float
    spread: float


NOTHING_KNOWN = ScalePrior(0.0, np.inf)


def stack(
    scores: Float[Array, "B n C"], y: Int[Array, " n"], ratio_spread: float, scale: ScalePrior = NOTHING_KNOWN
) -> Stacked:
    """Minimise the summed cross-entropy of sum_b w_b·scores_b, the weights being positive.

    A few shots cannot tell much about ratios, so the logarithms of the weights have a Gaussian prior around their
    mean, such that the logarithm of the ratio of two has standard deviation `ratio_spread`. The common scale makes
    the sum's softmax a probability. `information` is log C minus the mean cross-entropy.
    """
    from scipy.optimize import minimize

    here = np.arange(len(y))
    stiffness = 2 / ratio_spread**2

    def objective(logs: Float[Array, " B"]) -> tuple[float, Float[Array, " B"]]:
        weights = np.exp(logs)
        logits = np.einsum("b,bnc->nc", weights.astype(scores.dtype), scores)
        logits -= logits.max(axis=1, keepdims=True)
        own = logits[here, y]
        np.exp(logits, out=logits)
        total = logits.sum(axis=1)
        logits /= total[:, None]
        logits[here, y] -= 1
        slope = np.array([float(np.vdot(logits, of_head)) for of_head in scores])
        prior, pull = beliefs(logs)
        return float(np.sum(np.log(total) - own, dtype=np.float64)) + prior, weights * slope + pull

    def beliefs(logs: Float[Array, " B"]) -> tuple[float, Float[Array, " B"]]:
        apart, off = logs - logs.mean(), (logs.mean() - scale.centre) / scale.spread
        return float(stiffness * (apart @ apart) + off**2) / 2, stiffness * apart + off / scale.spread / len(logs)

    optimum = minimize(
        objective,
        np.zeros(len(scores)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LARGEST_LOG, LARGEST_LOG)] * len(scores),
        options={"maxiter": 50},
    )
    cross_entropy = (optimum.fun - beliefs(optimum.x)[0]) / len(y)
    return Stacked(np.exp(optimum.x), float(np.log(scores.shape[2]) - cross_entropy))
