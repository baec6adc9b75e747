"""Gauss-probe: a probe and a Gaussian head added up, weighed by shots that neither has seen; docs/gauss-probe.md."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, average_view, part_of
from kshot.methods.fast_probe import LearntProbe, learn_probe
from kshot.methods.fold_gda import FoldGDA, shots_correction
from kshot.methods.parameters import Count, Positive
from kshot.solvers.leaving_out import Fold, balanced_folds, ranks_by_text
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.stacking import ScalePrior, stack
from kshot.types import ENCODER_CONSTANTS, FREE_EVIDENCE, Array, Choice, MethodInfo

INFO = MethodInfo(
    key="gauss_probe",
    title="Gauss-probe",
    sees=FREE_EVIDENCE,
    min_shots=1,
    paper="kshot, docs/gauss-probe.md",
    closed_form=False,
    views=True,
    constants=ENCODER_CONSTANTS,
)
# The logarithm of the ratio of the two weights has this standard deviation before any shot is looked at.
RATIO_SPREAD = 0.5
# So does the logarithm of the common scale, around the first side's own.
SCALE_SPREAD = 0.2
# The power of K/(K−1) by which more shots make a head surer that knows nothing but shots; docs/gauss-probe.md.
GROWTH = 0.25
# Two weights need no more shots than these to judge.
MOST_JUDGES = 2048


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
        spread, new_spread = _spread(scores), _spread(held_out)
        excess = max(seen_spread / new_spread - 1, 0) * shots_share if len(held_out) else 0.0
        return cls(coef / spread, intercept / spread, held_out / new_spread, spread, 1 / (1 + excess))


class GaussProbe(Classifier):
    """logits = a·probe/(its spread) + b·fold-GDA/(its spread), one linear head whose softmax is a probability.

    A spread is the mean over the shots of the standard deviation over classes. The two sides learn from the same
    shots by different means and err on different pictures. a and b maximise the likelihood of shots left out: for
    the Gaussian side by its exact folds, for the probe by learning from one half of every class's shots and judging
    the other. `stacked=False` takes a = b = 1. `probe=False` leaves fold-GDA alone, `gaussian=False` the probe
    alone, which is also all there is with one shot per class. The probe sees every view as a row of its own, the
    Gaussian side the average view.
    """

    grids: ClassVar = {"iterations": (4, 12, 40)}

    def __init__(
        self,
        probe: bool = True,
        gaussian: bool = True,
        stacked: bool = True,
        iterations: Count = 12,
        logit_scale: Positive = 100.0,
        anchor_scale: Positive = 10.0,
    ):
        self.probe = probe
        self.gaussian = gaussian
        self.stacked = stacked
        self.iterations = iterations
        self.logit_scale = logit_scale
        self.anchor_scale = anchor_scale

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        if not (self.probe or self.gaussian):
            raise InputError("probe and gaussian are both off. Leave at least one of them on.")
        if task.counts.max() == 1:
            self._fit_single_shots(task)
            return
        X = average_view(task)
        number = ranks_by_text(X, task.y, task.text)
        folds = list(balanced_folds(number, task.y, MOST_JUDGES)) if self.stacked else []
        sides = {}
        if self.probe:
            sides["probe"] = self._probe_side(task, X, number, folds)
        if self.gaussian:
            sides["gaussian"] = self._gaussian_side(task, X, folds)
        weights = self._weigh(sides, task, X, folds)
        parts = [(w * side.coef, w * side.intercept) for w, side in zip(weights, sides.values(), strict=True)]
        self._set_linear(*(np.sum(part, axis=0) for part in zip(*parts, strict=True)))

    def _fit_single_shots(self, task: Task) -> None:
        """Nothing can be left out and there is no covariance."""
        learnt = self._learn_probe(task)
        self.selected_ = learnt.selected
        self._set_linear(self.logit_scale * unit_prototypes(learnt.weights))

    def _learn_probe(self, task: Task, start: Float[Array, "C d"] | None = None) -> LearntProbe:
        return learn_probe(task, self.iterations, self.anchor_scale, self.logit_scale, start)

    def _probe_side(
        self, task: Task, X: Float[Array, "N d"], number: Int[Array, " N"], folds: Sequence[Fold]
    ) -> Side:
        """Two halves judge each other; the whole starts where they ended on average."""
        alone = task.counts[task.y] == 1
        judges = _asked(folds)
        held_out = np.empty((len(judges), task.n_classes), X.dtype)
        starts, seen = [], []
        for half in (0, 1):
            asked = number[judges] % 2 == half
            if asked.any():
                kept = alone | (number % 2 != half)
                weights = self._learn_probe(part_of(task, kept)).weights
                directions = unit_prototypes(weights).T
                held_out[asked] = X[judges[asked]] @ directions
                seen.append(_spread(X[kept] @ directions))
                starts.append(weights)
        learnt = self._learn_probe(task, np.mean(starts, axis=0) if starts else None)
        self.selected_ |= learnt.selected
        coef = self.logit_scale * unit_prototypes(learnt.weights)
        seen_spread = float(np.mean(seen)) if seen else 1.0
        return Side.of(coef, np.zeros(len(coef), coef.dtype), X @ coef.T, held_out, seen_spread, 0.5)

    def _gaussian_side(self, task: Task, X: Float[Array, "N d"], folds: Sequence[Fold]) -> Side:
        head = FoldGDA(logit_scale=self.logit_scale)
        members = head.learn(task)
        self.selected_ |= head.selected_
        held_out = members.held_out(folds) if folds else np.empty((0, task.n_classes), X.dtype)
        scores = X @ head.coef_.T + head.intercept_
        correction = shots_correction(task.counts)
        as_judged = members.text_scores + (scores - members.text_scores) / correction
        return Side.of(head.coef_, head.intercept_, scores, held_out, _spread(as_judged), 1 / correction)

    def _weigh(
        self,
        sides: dict[str, Side],
        task: Task,
        X: Float[Array, "N d"],
        folds: Sequence[Fold],
    ) -> Float[Array, " B"]:
        """Stacked weights, carried from the shots that the judged heads had to all of them.

        Few judges know little about the common scale, so it starts from that of the probe's own logits. How much
        surer more shots make a head depends on how much of what it knows comes from shots: nothing where text
        alone says as much about the judges.
        """
        if not self.stacked:
            return np.ones(len(sides), X.dtype)
        judges = _asked(folds)
        y, text_scores = task.y[judges], X[judges] @ (self.logit_scale * task.text).T
        held_out = np.stack([side.held_out for side in sides.values()])
        stacked = stack(held_out, y, RATIO_SPREAD)
        text = stack(text_scores[None], y, RATIO_SPREAD)
        from_shots = 1 - min(max(text.information, 0) / max(stacked.information, 1e-6), 1)
        growth = shots_correction(task.counts) ** (GROWTH * from_shots)
        first = next(iter(sides.values()))
        own = np.log(first.spread * first.left / (growth * stacked.weights.sum()))
        own_scale = ScalePrior(float(own), SCALE_SPREAD)
        total = np.einsum("b,bnc->nc", stacked.weights.astype(X.dtype), held_out)
        weights = growth * stack(total[None], y, RATIO_SPREAD, own_scale).weights * stacked.weights
        weights /= [side.left for side in sides.values()]
        for name, weight in zip(sides, weights.tolist(), strict=True):
            self.selected_[f"{name}_weight"] = Choice(weight, "support")
        self.selected_["from_shots"] = Choice(from_shots, "support")
        return weights.astype(X.dtype)


def _asked(folds: Sequence[Fold]) -> Int[Array, " n"]:
    """The rows that judge, one fold after the other."""
    return np.concatenate([np.empty(0, np.int64), *(np.flatnonzero(fold.asked) for fold in folds)])


def _spread(scores: Float[Array, "n C"]) -> float:
    """The mean over rows of the standard deviation over classes; 1 where all classes score alike."""
    return (float(scores.std(axis=1).mean(dtype=np.float64)) or 1.0) if len(scores) else 1.0
