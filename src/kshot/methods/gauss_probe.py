"""Gauss-probe: a probe and a Gaussian head added up, each in units of its own spread; docs/gauss-probe.md."""

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.fast_probe import FastProbe
from kshot.methods.fold_gda import FoldGDA
from kshot.methods.parameters import Count, Positive
from kshot.methods.views import average_view
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


class GaussProbe(Classifier):
    """logits = probe/(its spread) + fold-GDA/(its spread), one linear head.

    A spread is the mean over the shots of the standard deviation over classes. The two sides learn from the same
    shots by different means and err on different pictures. `probe=False` leaves fold-GDA alone, `gaussian=False`
    the probe alone, which is also all there is with one shot per class. The probe sees every view as a row of its
    own, the Gaussian side the average view.
    """

    def __init__(
        self,
        probe: bool = True,
        gaussian: bool = True,
        iterations: Count = 20,
        logit_scale: Positive = 100.0,
        anchor_scale: Positive = 10.0,
    ):
        self.probe = probe
        self.gaussian = gaussian
        self.iterations = iterations
        self.logit_scale = logit_scale
        self.anchor_scale = anchor_scale

    @property
    def info(self) -> MethodInfo:
        return INFO

    def _fit(self, task: Task) -> None:
        sides = self._sides(task)
        X = average_view(task)
        coef, intercept = np.zeros_like(task.text), np.zeros(task.n_classes, X.dtype)
        for name, side in sides.items():
            side.fit(task.X, task.y, text=task.text, views=task.views)
            spread = _spread(X @ side.coef_.T + side.intercept_)
            coef += side.coef_ / X.dtype.type(spread)
            intercept += side.intercept_ / X.dtype.type(spread)
            self.selected_ |= side.selected_ | {f"{name}_spread": Choice(spread, "support")}
        self._set_linear(coef, intercept)

    def _sides(self, task: Task) -> dict[str, Classifier]:
        if not (self.probe or self.gaussian):
            raise InputError("probe and gaussian are both off. Leave at least one of them on.")
        sides: dict[str, Classifier] = {}
        if self.probe or task.counts.max() == 1:
            sides["probe"] = FastProbe(self.iterations, self.anchor_scale, self.logit_scale)
        if self.gaussian and task.counts.max() > 1:
            sides["gaussian"] = FoldGDA(logit_scale=self.logit_scale)
        return sides


def _spread(scores: Float[Array, "N C"]) -> float:
    """The mean over rows of the standard deviation over classes; 1 where all classes score alike."""
    return float(scores.std(axis=1).mean(dtype=np.float64)) or 1.0
