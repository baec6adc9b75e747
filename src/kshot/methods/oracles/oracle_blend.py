"""Oracle ratio: the best single ratio on the test labels; the ceiling of blending, never a method."""

from kshot.methods.base import Classifier
from kshot.methods.blending import blend
from kshot.methods.evidence import Task
from kshot.methods.parameters import Positive
from kshot.methods.ratio_knob import RatioKnob
from kshot.solvers.ratio_sweep import GRID
from kshot.stats.selected import RATIO, curve_name
from kshot.types import Choice, MethodInfo

INFO = MethodInfo(
    key="oracle_lambda",
    title="Oracle ratio",
    sees=frozenset({"text", "support", "test"}),
    min_shots=1,
    paper="paper, Sec. 4.3",
    constants=frozenset({"logit_scale"}),
)


class OracleBlend(RatioKnob, Classifier):
    """The grid of ratios scored on the test set; ties take the smallest.

    Parameters
    ----------
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    def __init__(self, logit_scale: Positive | None = None):
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        assert task.test is not None
        curve = self.knob_curve(task, task.test)
        ratio = float(GRID[curve.argmax()])
        self.selected_ = {RATIO: Choice(ratio, "test"), curve_name("test"): Choice(curve.tolist(), "test")}
        self._set_linear(blend(task.means, task.text, ratio), scale=task.logit_scale)
