"""Several linear heads become one, weighed by shots that none of them has seen; docs/gauss-probe.md."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.stacking import ScalePrior, stack
from kshot.types import Array


class Side(NamedTuple):
    """One head in units of its spread on its shots, and the judges' scores by heads without them, in theirs.

    A head spreads the shots that it learnt from more than new pictures; `left` is the share that is left on those.
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
        """`scores` are the head's on its shots, `seen_spread` is the judged heads' on theirs, a share of all.

        What a spread has too much falls as one over the shots.
        """
        own_spread, new_spread = spread(scores), spread(held_out)
        excess = max(seen_spread / new_spread - 1, 0) * shots_share if len(held_out) else 0.0
        return cls(coef / own_spread, intercept / own_spread, held_out / new_spread, own_spread, 1 / (1 + excess))


def spread(scores: Float[Array, "n C"]) -> float:
    """The mean over rows of the standard deviation over classes; 1 where all classes score alike."""
    return (float(scores.std(axis=1).mean(dtype=np.float64)) or 1.0) if len(scores) else 1.0


class Beliefs(NamedTuple):
    """What is known of the weights before any shot judges; read off the pools of eleven sets.

    The logarithm of the ratio of two weights has standard deviation `ratio_spread` around 0, that of the common
    scale `scale_spread` around the scale of the first side's own logits, plus `scale_rise`·log(K/2): the sum is
    surer than the first side alone, the more so the more shots there are. `growth` is the power of K/(K−1) by which
    more shots make a head surer that knows nothing but shots.
    """

    ratio_spread: float = 0.5
    scale_spread: float = 0.2
    scale_rise: float = 0.2
    growth: float = 0.25


BELIEFS = Beliefs()


class Weighed(NamedTuple):
    """A weight for each side, and the share of what the sum tells that text alone does not."""

    weights: Float[Array, " B"]
    from_shots: float


def weigh(
    sides: Sequence[Side],
    y: Int[Array, " n"],
    text_scores: Float[Array, "n C"],
    correction: float,
    beliefs: Beliefs = BELIEFS,
) -> Weighed:
    """Stacked weights, carried from the shots that the judged heads had to all of them; `correction` is K/(K−1).

    Few judges know little about the common scale, so it has a prior. How much surer more shots make a head depends
    on how much of what it knows comes from shots: nothing where text alone says as much about the judges.
    """
    held_out = np.stack([side.held_out for side in sides])
    stacked = stack(held_out, y, beliefs.ratio_spread)
    from_shots = 1 - min(text_alone(text_scores, y).information / max(stacked.information, 1e-6), 1)
    growth = correction ** (beliefs.growth * from_shots)
    rise = beliefs.scale_rise * np.log(correction / (correction - 1) / 2)
    own = np.log(sides[0].spread * sides[0].left / (growth * stacked.weights.sum()))
    total = np.einsum("b,bnc->nc", stacked.weights.astype(held_out.dtype), held_out)
    scale = stack(total[None], y, 1.0, ScalePrior(float(own + rise), beliefs.scale_spread)).weights
    return Weighed(growth * scale * stacked.weights / [side.left for side in sides], from_shots)


def joint_information(
    held_out: Float[Array, "n C"], partners: Sequence[Side], y: Int[Array, " n"], beliefs: Beliefs = BELIEFS
) -> float:
    """What these scores and the partners tell about the judges together, in nats per shot."""
    scores = np.stack([held_out / spread(held_out), *(side.held_out for side in partners)])
    return stack(scores, y, beliefs.ratio_spread).information


class TextAlone(NamedTuple):
    """The factor that makes text's softmax a probability, and what it tells about the class, in nats per shot."""

    scale: float
    information: float


def text_alone(text_scores: Float[Array, "n C"], y: Int[Array, " n"]) -> TextAlone:
    """Judged by shots, which text has not seen; text that tells less than nothing counts as telling nothing."""
    weights, information = stack(text_scores[None], y, 1.0)
    return TextAlone(float(weights[0]), max(information, 0.0))
