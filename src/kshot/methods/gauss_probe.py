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
from kshot.methods.weighing import Side, joint_information, spread, text_alone, weigh
from kshot.solvers.leaving_out import Fold, balanced_folds, ranks_by_text
from kshot.solvers.rows import unit_prototypes
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
# Two weights need no more shots than these to judge.
MOST_JUDGES = 2048
# With one shot per class, a text that tells everything holds the probe so much more firmly; docs/gauss-probe.md.
SINGLE_SHOT_PULL = 15.0
# With more, penalties so many times CLAP's are taken where the judges are so many times likelier under them.
FIRMER = 8.0


class Judges(NamedTuple):
    """The shots in their average view, their numbers within their classes, and the folds that judge."""

    X: Float[Array, "N d"]
    number: Int[Array, " N"]
    folds: Sequence[Fold]

    @classmethod
    def of(cls, task: Task) -> "Judges":
        X = average_view(task)
        number = ranks_by_text(X, task.y, task.text)
        return cls(X, number, list(balanced_folds(number, task.y, MOST_JUDGES)))

    @property
    def rows(self) -> Int[Array, " n"]:
        """The rows that judge, one fold after the other."""
        return np.concatenate([np.empty(0, np.int64), *(np.flatnonzero(fold.asked) for fold in self.folds)])


class Halves(NamedTuple):
    """Probes that learnt from one half of the shots each: cosines of the judges, spread on their own shots, weights.

    Where nobody judges there is no half, and the weights are none.
    """

    pull: float
    held_out: Float[Array, "n C"]
    seen_spread: float
    weights: Float[Array, "C d"] | None


class GaussProbe(Classifier):
    """logits = a·probe/(its spread) + b·fold-GDA/(its spread), one linear head whose softmax is a probability.

    A spread is the mean over the shots of the standard deviation over classes. The two sides learn from the same
    shots by different means and err on different pictures. a and b maximise the likelihood of shots left out: for
    the Gaussian side by its exact folds, for the probe by learning from one half of every class's shots and judging
    the other. These also say whether text holds the probe as in CLAP or eight times as firmly. `stacked=False` takes
    a = b = 1 and CLAP's penalties. `probe=False` leaves fold-GDA alone, `gaussian=False` the probe alone, which is
    also all there is with one shot per class. The probe sees every view as a row of its own, the Gaussian side the
    average view.
    """

    grids: ClassVar = {"iterations": (4, 12, 40)}

    def __init__(
        self,
        probe: bool = True,
        gaussian: bool = True,
        stacked: bool = True,
        iterations: Count = 12,
        logit_scale: Positive | None = None,
        anchor_scale: Positive | None = None,
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
        judges = Judges.of(task)
        if not self.stacked:
            judges = judges._replace(folds=[])
        gaussian = {"gaussian": self.gaussian_side(task, judges)} if self.gaussian else {}
        probe = {}
        if self.probe:
            halves = self.chosen_halves(task, judges, *gaussian.values())
            probe = {"probe": self.probe_side(task, judges, halves)}
        sides = probe | gaussian
        weights = self._weigh(sides, task, judges) if self.stacked else np.ones(len(sides), judges.X.dtype)
        parts = [(w * side.coef, w * side.intercept) for w, side in zip(weights, sides.values(), strict=True)]
        self._set_linear(*(np.sum(part, axis=0) for part in zip(*parts, strict=True)))

    def _fit_single_shots(self, task: Task) -> None:
        """Nothing can be left out and there is no covariance, but text has not seen the shots: they can judge it.

        The more it tells of them, the more firmly it holds the probe and the more its best temperature counts.
        """
        text_scores = average_view(task) @ (task.logit_scale * task.text).T
        scale, information = text_alone(text_scores, task.y)
        told = information / np.log(max(task.n_classes, 2))
        learnt = self._learn_probe(task, self.iterations, pull=1 + SINGLE_SHOT_PULL * told**2)
        self.selected_ = learnt.selected | {"text_information": Choice(told, "support")}
        self._set_linear(task.logit_scale * scale**told * unit_prototypes(learnt.weights))

    def _learn_probe(
        self, task: Task, iterations: int, start: Float[Array, "C d"] | None = None, pull: float = 1.0
    ) -> LearntProbe:
        return learn_probe(task, iterations, start, pull)

    def halves(self, task: Task, judges: Judges, iterations: int, pull: float = 1.0) -> Halves:
        """Two halves of every class's shots learn, and judge each other."""
        X, number, rows = judges.X, judges.number, judges.rows
        alone = task.counts[task.y] == 1
        held_out = np.empty((len(rows), task.n_classes), X.dtype)
        ends, seen = [], []
        for half in (0, 1):
            asked = number[rows] % 2 == half
            if asked.any():
                kept = alone | (number % 2 != half)
                weights = self._learn_probe(part_of(task, kept), iterations, pull=pull).weights
                directions = unit_prototypes(weights).T
                held_out[asked] = X[rows[asked]] @ directions
                seen.append(spread(X[kept] @ directions))
                ends.append(weights)
        if not ends:
            return Halves(pull, held_out, 1.0, None)
        return Halves(pull, held_out, float(np.mean(seen)), np.mean(ends, axis=0))

    def chosen_halves(self, task: Task, judges: Judges, *partners: Side) -> Halves:
        """Under CLAP's penalties, unless firmer ones make the judges that much likelier in the sum with the partners.

        A probe that is held so firmly gets there in half the iterations.
        """
        plain = self.halves(task, judges, self.iterations)
        if plain.weights is None:
            return plain
        firm = self.halves(task, judges, (self.iterations + 1) // 2, FIRMER)
        y = task.y[judges.rows]
        told = [joint_information(halves.held_out, partners, y) for halves in (plain, firm)]
        return firm if len(y) * (told[1] - told[0]) > np.log(FIRMER) else plain

    def probe_side(self, task: Task, judges: Judges, halves: Halves) -> Side:
        """The whole starts where the halves ended on average."""
        learnt = self._learn_probe(task, self.iterations, halves.weights, halves.pull)
        self.selected_ |= learnt.selected
        if halves.weights is not None:
            self.selected_["pull"] = Choice(halves.pull, "support")
        coef = task.logit_scale * unit_prototypes(learnt.weights)
        no_bias = np.zeros(len(coef), coef.dtype)
        return Side.of(coef, no_bias, judges.X @ coef.T, halves.held_out, halves.seen_spread, 0.5)

    def gaussian_side(self, task: Task, judges: Judges) -> Side:
        """Fold-GDA, judged by its exact folds."""
        X = judges.X
        head = FoldGDA()
        members = head.learn(task)
        self.selected_ |= head.selected_
        held_out = members.held_out(judges.folds) if judges.folds else np.empty((0, task.n_classes), X.dtype)
        scores = X @ head.coef_.T + head.intercept_
        correction = shots_correction(task.counts)
        as_judged = members.text_scores + (scores - members.text_scores) / correction
        return Side.of(head.coef_, head.intercept_, scores, held_out, spread(as_judged), 1 / correction)

    def _weigh(self, sides: dict[str, Side], task: Task, judges: Judges) -> Float[Array, " B"]:
        rows = judges.rows
        text_scores = judges.X[rows] @ (task.logit_scale * task.text).T
        weights, from_shots = weigh(list(sides.values()), task.y[rows], text_scores, shots_correction(task.counts))
        for name, weight in zip(sides, weights.tolist(), strict=True):
            self.selected_[f"{name}_weight"] = Choice(weight, "support")
        self.selected_["from_shots"] = Choice(from_shots, "support")
        return weights.astype(judges.X.dtype)
