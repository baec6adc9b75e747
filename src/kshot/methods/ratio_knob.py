"""The blending ratio as a knob: the grid and both curves, shared by its honest choice and its oracle."""

from collections.abc import Iterator, Sequence

from jaxtyping import Float

from kshot.methods.base import Classifier
from kshot.methods.blending import blend
from kshot.methods.evidence import Task
from kshot.methods.parameters import Positive, Share
from kshot.methods.shared_work import once
from kshot.solvers.ratio_sweep import GRID, accuracy_curve, leave_one_out_predictions, sweep_predictions
from kshot.stats.selected import RATIO
from kshot.types import FREE_EVIDENCE, Array, Choice, Labelled, MethodInfo


class FixedBlend(Classifier):
    """The blend at one ratio for all classes."""

    def __init__(self, ratio: Share = 0.5, logit_scale: Positive | None = None):
        self.ratio = ratio
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        title = f"Blend at ratio {self.ratio:g}"
        constants = frozenset({"logit_scale"})
        return MethodInfo("fixed_blend", title, FREE_EVIDENCE, 1, "paper, Eq. 1", constants=constants)

    def _fit(self, task: Task) -> None:
        self.selected_ = {RATIO: Choice(self.ratio, "fixed")}
        self._set_linear(blend(task.means, task.text, self.ratio), scale=task.logit_scale)


class RatioKnob:
    """Evenly spaced ratios from 0 to 1; a tie takes the smallest."""

    logit_scale: float | None

    def knob_name(self) -> str:
        return RATIO

    def knob_grid(self) -> Sequence[float]:
        return GRID.tolist()

    def knob_at(self, value: float) -> Classifier:
        return FixedBlend(value, self.logit_scale)

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        for ratio in GRID.tolist():
            yield task.logit_scale * (X @ blend(task.means, task.text, ratio).T)

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return accuracy_curve(sweep_predictions(queries.X, task.means, task.text), queries.y)

    def knob_loo_curve(self, task: Task) -> Float[Array, " L"]:
        return once(
            "leave-one-out ratios",
            lambda: accuracy_curve(
                leave_one_out_predictions(task.X, task.y, task.means, task.text, task.counts), task.y
            ),
            task.X,
            task.y,
            task.text,
        )
