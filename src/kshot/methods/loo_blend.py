"""Leave-one-out blend: one ratio for all classes, chosen on the shots alone (paper, Algorithm 1)."""

from dataclasses import replace
from typing import Annotated

import numpy as np

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.blending import RatioKnob, blend
from kshot.methods.evidence import Task
from kshot.methods.parameters import LogitScale
from kshot.solvers.ratio_sweep import GRID
from kshot.solvers.rows import correct_for_shots
from kshot.stats.selected import RATIO, curve_name
from kshot.types import FREE_EVIDENCE, MethodInfo

INFO = MethodInfo(key="loo_blend", title="LOO blend", sees=FREE_EVIDENCE, min_shots=2, paper="paper, Algorithm 1")
K_CORRECTED_INFO = replace(
    INFO, key="loo_blend_kcorr", title="LOO blend + K-correction", paper="paper, Eq. 18: odds × K/(K−1)"
)


class LOOBlend(RatioKnob, Classifier):
    """The ratio on the grid with the best leave-one-out accuracy; the smallest of equals.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.LOOBlend().fit(data.X, data.y, text=data.text)
    >>> print(f"{head.score(*data.test):.2f}")
    0.92
    """

    k_correction: Annotated[
        bool,
        "Carry the ratio from K−1 shots, where it was chosen, to K (their harmonic mean where classes are uneven).",
    ] = False
    allow_single: Annotated[bool, "Accept classes of one shot, which keep their whole mean."] = False
    logit_scale: LogitScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        return K_CORRECTED_INFO if self.k_correction else INFO

    def _min_shots(self) -> int:
        return 1 if self.allow_single else self.info.min_shots

    def _fit(self, task: Task) -> None:
        curve = self.knob_loo_curve(task)
        ratio = float(GRID[curve.argmax()])
        self._select("support", **{RATIO: ratio, curve_name("support"): curve.tolist()})
        if self.k_correction:
            before, ratio = ratio, _corrected(ratio, task.counts)
            self._select("support", **{RATIO: ratio, f"{RATIO}_before": before})
        self._set_linear(blend(task.means, task.text, ratio), scale=task.logit_scale)


def _corrected(ratio: float, counts: np.ndarray) -> float:
    several = counts[counts > 1]
    return correct_for_shots(ratio, float(1 / np.mean(1 / several))) if len(several) else ratio
