"""Weights that add several linear heads up to one, by the likelihood of shots that none of them has learnt from
(stacking, Wolpert 1992; docs/gauss-probe.md)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.softmax import exponentials
from kshot.types import Array

# e^±7: from probabilities that hardly differ between classes to the certainty of single-precision scores.
LARGEST_LOG = 7.0


class Stacked(NamedTuple):
    """A weight for each head, and the information of their sum about the class, in nats per shot."""

    weights: Float[Array, " B"]
    information: float


class ScalePrior(NamedTuple):
    """Gaussian prior on the mean of log w_b."""

    centre: float
    spread: float


FLAT = ScalePrior(0.0, np.inf)


def stack(scores: Float[Array, "B n C"], y: Int[Array, " n"], ratio_spread: float, scale: ScalePrior = FLAT) -> Stacked:
    """Minimise the summed cross-entropy of sum_b w_b·scores_b over positive weights.

    Few shots determine ratios badly, so the logarithms of the weights have a Gaussian prior around their mean, such
    that the logarithm of the ratio of two has standard deviation `ratio_spread`. The common scale makes the sum's
    softmax a probability. `information` is log C minus the mean cross-entropy.
    """
    from scipy.optimize import minimize

    here = np.arange(len(y))
    stiffness = 2 / ratio_spread**2

    def objective(logs: Float[Array, " B"]) -> tuple[float, Float[Array, " B"]]:
        weights = np.exp(logs)
        logits = np.einsum("b,bnc->nc", weights.astype(scores.dtype), scores)
        losses, total = exponentials(logits, y)
        logits /= total[:, None]
        logits[here, y] -= 1
        slope = np.array([float(np.vdot(logits, of_head)) for of_head in scores])
        penalty, pull = prior(logs)
        return float(np.sum(losses, dtype=np.float64)) + penalty, weights * slope + pull

    def prior(logs: Float[Array, " B"]) -> tuple[float, Float[Array, " B"]]:
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
    cross_entropy = (optimum.fun - prior(optimum.x)[0]) / len(y)
    return Stacked(np.exp(optimum.x), float(np.log(scores.shape[2]) - cross_entropy))


class Side(NamedTuple):
    """A head divided by the spread of its scores on its shots, and scores of left-out shots divided by theirs.

    A head spreads the shots that it learnt from more than new pictures; `left` is the share that remains on those.
    """

    coef: Float[Array, "C d"]
    intercept: Float[Array, " C"]
    held_out: Float[Array, "n C"]
    spread: float
    left: float

    @classmethod
    def of(
        cls,
        coef: Float[Array, "C d"],
        intercept: Float[Array, " C"],
        scores: Float[Array, "N C"],
        held_out: Float[Array, "n C"],
        seen_spread: float,
        shots_share: float,
    ) -> "Side":
        """Divide a head by the spread of `scores`, which it gives its own shots.

        The heads that gave `held_out` learnt from `shots_share` of these, and spread them by `seen_spread`; the excess
        over new pictures falls as one over the shots.
        """
        own_spread, new_spread = spread(scores), spread(held_out)
        excess = max(seen_spread / new_spread - 1, 0) * shots_share if len(held_out) else 0.0
        return cls(coef / own_spread, intercept / own_spread, held_out / new_spread, own_spread, 1 / (1 + excess))


def spread(scores: Float[Array, "n C"]) -> float:
    """The mean over rows of the standard deviation over classes; 1 where all classes score alike."""
    return (float(scores.std(axis=1).mean(dtype=np.float64)) or 1.0) if len(scores) else 1.0


def rival_spread(scores: Float[Array, "n C"], y: Int[Array, " n"]) -> float:
    """The spread over the classes that a row does not belong to, which a head does not learn by heart; over both where
    there are two."""
    n, C = scores.shape
    if C < 3:
        return spread(scores)
    rivals = np.ones((n, C), bool)
    rivals[np.arange(n), y] = False
    return spread(scores[rivals].reshape(n, C - 1))


class WeightPriors(NamedTuple):
    """Priors of the weights, measured on the pools of eleven sets.

    The logarithm of the ratio of two weights has standard deviation `ratio_spread` around 0, that of the common scale
    `scale_spread` around the scale of the first side's own logits plus `scale_rise`·log(K/2). `growth` is the power
    of K/(K−1) by which one more shot scales the logits of a head that reads no text.
    """

    ratio_spread: float = 0.5
    scale_spread: float = 0.2
    scale_rise: float = 0.2
    growth: float = 0.25


PRIORS = WeightPriors()


class SideWeights(NamedTuple):
    """A weight for each side, and the share of the sum's information that text alone does not have."""

    weights: Float[Array, " B"]
    from_shots: float


def side_weights(
    sides: Sequence[Side],
    y: Int[Array, " n"],
    text_scores: Float[Array, "n C"],
    correction: float,
    priors: WeightPriors = PRIORS,
) -> SideWeights:
    """Stack the sides, then carry the weights from K−1 shots to K; `correction` is K/(K−1).

    The more of the information comes from shots and not from text, the more the logits grow with another shot.
    """
    held_out = np.stack([side.held_out for side in sides])
    stacked = stack(held_out, y, priors.ratio_spread)
    from_shots = 1 - min(text_scale(text_scores, y).information / max(stacked.information, 1e-6), 1)
    growth = correction ** (priors.growth * from_shots)
    rise = priors.scale_rise * np.log(correction / (correction - 1) / 2)
    own = np.log(sides[0].spread * sides[0].left / (growth * stacked.weights.sum()))
    total = np.einsum("b,bnc->nc", stacked.weights.astype(held_out.dtype), held_out)
    scale = stack(total[None], y, 1.0, ScalePrior(float(own + rise), priors.scale_spread)).weights
    return SideWeights(growth * scale * stacked.weights / [side.left for side in sides], from_shots)


def joint_information(held_out: Float[Array, "n C"], partners: Sequence[Side], y: Int[Array, " n"]) -> float:
    """Information of these scores and the partners' about the left-out shots, in nats per shot."""
    scores = np.stack([held_out / spread(held_out), *(side.held_out for side in partners)])
    return stack(scores, y, PRIORS.ratio_spread).information


class TextScale(NamedTuple):
    """The factor that makes text's softmax a probability, and its information about the class, in nats per shot."""

    scale: float
    information: float


def text_scale(text_scores: Float[Array, "n C"], y: Int[Array, " n"], prior: ScalePrior = FLAT) -> TextScale:
    """Fit the factor on shots, which text has not learnt from; the information is clipped at zero."""
    weights, information = stack(text_scores[None], y, 1.0, prior)
    return TextScale(float(weights[0]), max(information, 0.0))
