"""Leave-one-out blend: one ratio for all classes, chosen on the shots alone (paper, Algorithm 1)."""

import numpy as np

from kshot.methods.base import Classifier
from kshot.methods.blending import blend
from kshot.methods.evidence import Task
from kshot.methods.parameters import Positive
from kshot.methods.ratio_knob import RatioKnob
from kshot.solvers.ratio_sweep import GRID
from kshot.solvers.shrinkage import correct_for_shots
from kshot.stats.selected import RATIO, curve_name
from kshot.types import Choice, MethodInfo

INFO = MethodInfo(
    key="loo_blend",
    title="LOO blend",
    sees=frozenset({"text", "support"}),
    min_shots=2,
    paper="paper, Algorithm 1",
    constants=frozenset({"logit_scale"}),
)
K_CORRECTED_INFO = MethodInfo(
    key="loo_blend_kcorr",
    title="LOO blend + K-correction",
    sees=frozenset({"text", "support"}),
    min_shots=2,
    paper="paper, Eq. 18: odds × K/(K−1)",
    constants=frozenset({"logit_scale"}),
)


class LOOBlend(RatioKnob, Classifier):
    """The ratio on the grid with the best leave-one-out accuracy; ties take the smallest.

    `k_correction` carries the ratio from K−1 to K shots (harmonic mean of K where classes are uneven).
    `allow_single` lets a class of one shot keep its undeflated mean instead of refusing it.

    Parameters
    ----------
    k_correction : bool
        Carry the ratio from K−1 shots, where it was chosen, to K.
    allow_single : bool
        Accept classes of one shot, which keep their whole mean.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    """

    def __init__(self, k_correction: bool = False, allow_single: bool = False, logit_scale: Positive | None = None):
        self.k_correction = k_correction
        self.allow_single = allow_single
        self.logit_scale = logit_scale

    @property
    def info(self) -> MethodInfo:
        return K_CORRECTED_INFO if self.k_correction else INFO

    def _min_shots(self) -> int:
        return 1 if self.allow_single else self.info.min_shots

    def _fit(self, task: Task) -> None:
        curve = self.knob_loo_curve(task)
        ratio = float(GRID[curve.argmax()])
        self.selected_ = {RATIO: Choice(ratio, "support"), curve_name("support"): Choice(curve.tolist(), "support")}
        if self.k_correction:
            before, ratio = ratio, _corrected(ratio, task.counts)
            self.selected_ |= {RATIO: Choice(ratio, "support"), f"{RATIO}_before": Choice(before, "support")}
        self._set_linear(blend(task.means, task.text, ratio), scale=task.logit_scale)


def _corrected(ratio: float, counts: np.ndarray) -> float:
    deflatable = counts[counts > 1]
    if not len(deflatable):
        return ratio
    return correct_for_shots(ratio, float(1 / np.mean(1 / deflatable)))
