"""Gauss-probe: a probe and a Gaussian head added up, with weights from left-out shots; docs/gauss-probe.md."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, average_view, part_of
from kshot.methods.fast_probe import learn_probe
from kshot.methods.fold_gda import FoldGDA, shots_correction
from kshot.methods.parameters import AnchorScale, Count, LogitScale
from kshot.methods.single_shots import fit_single_shots
from kshot.solvers.folds import Fold, balanced_folds, ranks_by_text
from kshot.solvers.rows import unit_prototypes
from kshot.solvers.stacking import Side, joint_information, side_weights, spread
from kshot.types import Array, MethodInfo

# Two weights need no more left-out shots than these.
MOST_LEFT_OUT = 2048
# Use 8 times CLAP's penalties if that makes the left-out shots at least 8 times as likely.
STRONG_PULL = 8.0


class LeftOutShots(NamedTuple):
    """The shots in their average view, their numbers within their classes, and the folds that leave them out."""

    X: Float[Array, "N d"]
    number: Int[Array, " N"]
    folds: Sequence[Fold]

    @classmethod
    def of(cls, task: Task) -> "LeftOutShots":
        X = average_view(task)
        number = ranks_by_text(X, task.y, task.text)
        return cls(X, number, list(balanced_folds(number, task.y, MOST_LEFT_OUT)))

    @property
    def rows(self) -> Int[Array, " n"]:
        """The left-out rows, fold by fold."""
        return np.concatenate([np.empty(0, np.int64), *(np.flatnonzero(fold.scored) for fold in self.folds)])


class HalfProbes(NamedTuple):
    """Two probes of half the shots each: cosines of the left-out shots, spread on their own shots, mean weights.

    Where no shot is left out there are no probes, and the weights are None.
    """

    pull: float
    held_out: Float[Array, "n C"]
    seen_spread: float
    weights: Float[Array, "C d"] | None


class GaussProbe(Classifier):
    """logits = a·probe/(its spread) + b·fold-GDA/(its spread), one linear head whose softmax is a probability.

    A spread is the mean over the shots of the standard deviation over classes. The two sides learn from the same
    shots by different means and err on different pictures. a and b maximise the likelihood of left-out shots: for
    the Gaussian side by its exact folds, for the probe by learning from one half of every class's shots and scoring
    the other. The probe's penalties are CLAP's or 8 times these, whichever the left-out shots prefer. With one shot per
    class it adds the probe, TaskRes and a spherical Gaussian head by fixed rules, and the switches do nothing. The
    probe sees every view as a row of its own, the Gaussian side the average view.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.GaussProbe().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.95
    """

    grids: ClassVar = {"iterations": (4, 12, 40)}
    info = MethodInfo(
        key="gauss_probe",
        title="Gauss-probe",
        paper="kshot, docs/gauss-probe.md",
        closed_form=False,
        views=True,
        rotation_free=False,
        version=2,
    )
    probe: Annotated[bool, "Use the probe; without it the head is fold-GDA alone."] = True
    gaussian: Annotated[bool, "Use fold-GDA; without it the head is the probe alone."] = True
    stacked: Annotated[bool, "Choose weights and penalty on left-out shots; else 1 and CLAP's."] = True
    iterations: Annotated[Count, "Steps of L-BFGS for the probe."] = 12
    logit_scale: LogitScale = None
    anchor_scale: AnchorScale = None

    def _fit(self, task: Task) -> None:
        if not (self.probe or self.gaussian):
            raise InputError("probe and gaussian are both off. Leave at least one of them on.")
        if task.counts.max() == 1:
            self._fit_single_shots(task)
            return
        left_out = LeftOutShots.of(task)
        if not self.stacked:
            left_out = left_out._replace(folds=[])
        gaussian = {"gaussian": self.gaussian_side(task, left_out)} if self.gaussian else {}
        probe = {}
        if self.probe:
            probes = self.choose_pull(task, left_out, *gaussian.values())
            probe = {"probe": self.probe_side(task, left_out, probes)}
        sides = probe | gaussian
        weights = self._weights(sides, task, left_out) if self.stacked else np.ones(len(sides), left_out.X.dtype)
        parts = [(w * side.coef, w * side.intercept) for w, side in zip(weights, sides.values(), strict=True)]
        self._set_linear(*(np.sum(part, axis=0) for part in zip(*parts, strict=True)))

    def _fit_single_shots(self, task: Task) -> None:
        head = fit_single_shots(task, self.iterations)
        self._select("support", penalties=head.penalties, text_information=head.text_information)
        self._set_linear(head.coef, head.intercept)

    def half_probes(self, task: Task, left_out: LeftOutShots, iterations: int, pull: float = 1.0) -> HalfProbes:
        """Learn from either half of every class's shots, and score the other half."""
        X, number, rows = left_out.X, left_out.number, left_out.rows
        single = task.counts[task.y] == 1
        held_out = np.empty((len(rows), task.n_classes), X.dtype)
        ends, seen = [], []
        for half in (0, 1):
            here = number[rows] % 2 == half
            if here.any():
                kept = single | (number % 2 != half)
                weights, _ = learn_probe(part_of(task, kept), iterations, pull=pull)
                directions = unit_prototypes(weights).T
                held_out[here] = X[rows[here]] @ directions
                seen.append(spread(X[kept] @ directions))
                ends.append(weights)
        if not ends:
            return HalfProbes(pull, held_out, 1.0, None)
        return HalfProbes(pull, held_out, float(np.mean(seen)), np.mean(ends, axis=0))

    def choose_pull(self, task: Task, left_out: LeftOutShots, *partners: Side) -> HalfProbes:
        """Half probes under 8 times CLAP's penalties if these make the left-out shots 8 times as likely in the sum with
        the partners, else under CLAP's. With larger penalties half the iterations are enough.
        """
        plain = self.half_probes(task, left_out, self.iterations)
        if plain.weights is None:
            return plain
        strong = self.half_probes(task, left_out, (self.iterations + 1) // 2, STRONG_PULL)
        y = task.y[left_out.rows]
        plain_information, strong_information = (
            joint_information(probes.held_out, partners, y) for probes in (plain, strong)
        )
        return strong if len(y) * (strong_information - plain_information) > np.log(STRONG_PULL) else plain

    def probe_side(self, task: Task, left_out: LeftOutShots, probes: HalfProbes) -> Side:
        """Learn from all shots, starting at the mean of the half probes."""
        weights, penalties = learn_probe(task, self.iterations, probes.weights, probes.pull)
        self._select("support", penalties=penalties)
        if probes.weights is not None:
            self._select("support", pull=probes.pull)
        coef = task.logit_scale * unit_prototypes(weights)
        no_bias = np.zeros(len(coef), coef.dtype)
        return Side.of(coef, no_bias, left_out.X @ coef.T, probes.held_out, probes.seen_spread, 0.5)

    def gaussian_side(self, task: Task, left_out: LeftOutShots) -> Side:
        """Fold-GDA and its exact held-out scores."""
        X = left_out.X
        head = FoldGDA()
        head.selected_ = self.selected_
        members = head.learn(task)
        held_out = members.held_out(left_out.folds) if left_out.folds else np.empty((0, task.n_classes), X.dtype)
        scores = X @ head.coef_.T + head.intercept_
        correction = shots_correction(task.counts)
        of_fewer_shots = members.text_scores + (scores - members.text_scores) / correction
        return Side.of(head.coef_, head.intercept_, scores, held_out, spread(of_fewer_shots), 1 / correction)

    def _weights(self, sides: dict[str, Side], task: Task, left_out: LeftOutShots) -> Float[Array, " B"]:
        rows = left_out.rows
        text_scores = left_out.X[rows] @ (task.logit_scale * task.text).T
        correction = shots_correction(task.counts)
        weights, from_shots = side_weights(list(sides.values()), task.y[rows], text_scores, correction)
        for name, weight in zip(sides, weights.tolist(), strict=True):
            self._select("support", **{f"{name}_weight": weight})
        self._select("support", from_shots=from_shots)
        return weights.astype(left_out.X.dtype)
