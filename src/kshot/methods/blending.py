"""Blends p_c(λ) = λ·mu_c + (1−λ)·t_c, scored by cosine (paper, Eq. 1), and their ratio λ as a knob."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task
from kshot.methods.parameters import LogitScale, Share
from kshot.methods.shared_work import once
from kshot.solvers.ratio_sweep import GRID, accuracy_curve, leave_one_out_predictions, sweep_predictions
from kshot.solvers.rows import unit_prototypes
from kshot.stats.selected import RATIO
from kshot.types import Array, Labelled, MethodInfo


def blend(
    means: Float[Array, "C d"], text: Float[Array, "C d"], ratio: float | Float[Array, " C"]
) -> Float[Array, "C d"]:
    """Unit prototypes at one ratio for all classes, or one per class."""
    lam = np.broadcast_to(np.asarray(ratio, means.dtype), (len(means),))[:, None]
    return unit_prototypes(lam * means + (1 - lam) * text)


def ratio_summary(ratios: Float[Array, " C"]) -> dict[str, float]:
    """Mean, range and share of zeros of one ratio per class, for records."""
    return {
        "mean": float(ratios.mean()),
        "min": float(ratios.min()),
        "max": float(ratios.max()),
        "share_at_0": float(np.mean(ratios == 0)),
    }


class FixedBlend(Classifier):
    """The blend at one ratio for all classes."""

    ratio: Annotated[Share, "Weight of the class means."] = 0.5
    logit_scale: LogitScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        return MethodInfo("fixed_blend", f"Blend at ratio {self.ratio:g}", paper="paper, Eq. 1")

    def _fit(self, task: Task) -> None:
        self._select("fixed", **{RATIO: self.ratio})
        self._set_linear(blend(task.means, task.text, self.ratio), scale=task.logit_scale)


class RatioKnob:
    """The ratio as a knob: 0 to 1 in steps of 0.01, the smallest of equals."""

    logit_scale: float | None

    def knob_name(self) -> str:
        return RATIO

    def knob_grid(self) -> Sequence[float]:
        return GRID.tolist()

    def knob_at(self, value: float) -> Classifier:
        return FixedBlend(ratio=value, logit_scale=self.logit_scale)

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        for ratio in GRID.tolist():
            yield task.logit_scale * (X @ blend(task.means, task.text, ratio).T)

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return accuracy_curve(sweep_predictions(queries.X, task.means, task.text), queries.y)

    def knob_loo_curve(self, task: Task) -> Float[Array, " L"]:
        def compute() -> Float[Array, " L"]:
            return accuracy_curve(leave_one_out_predictions(task.X, task.y, task.means, task.text), task.y)

        return once("leave-one-out ratios", compute, task.X, task.y, task.text)
