"""Any method with calibrated probabilities; its predictions do not change."""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError
from kshot.methods import registry
from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task, part_of
from kshot.methods.knob import folds_of
from kshot.methods.parameters import AnchorScale, LogitScale
from kshot.methods.selectors import fit_on
from kshot.solvers.softmax import calibrate, in_range_of
from kshot.types import Array, MethodInfo


class Calibrated(Classifier):
    """`method` with one temperature for all pictures (`by="folds"`), or with the range of zero-shot logits for each
    picture (`by="range"`, which is training-free and chooses nothing).
    """

    method: Annotated[str, "Name of the method."] = "loo_blend"
    by: Annotated[
        Literal["folds", "range"],
        "Folds leave one shot of every class out in turn; the temperature has the best likelihood on these. The range "
        "is that of the picture's zero-shot logits.",
    ] = "folds"
    logit_scale: LogitScale = None
    anchor_scale: AnchorScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        inner = registry.info(self.method)
        if self.by == "range" and "text" not in inner.sees:
            raise InputError(f"{self.method} reads no text, so there is no zero-shot range; give by='folds'.")
        if self.by == "folds" and "support" not in inner.sees:
            raise InputError(f"{self.method} reads no shots that could be left out; give by='range'.")
        return replace(
            inner,
            key=f"{self.method}:calibrated-{self.by}",
            title=f"{inner.title}, calibrated by {self.by}",
            min_shots=inner.min_shots + (self.by == "folds"),
            linear=False,
            constants=frozenset(),
        )

    def _fit(self, task: Task) -> None:
        self.head_: Classifier = fit_on(registry.create(self.method), task)
        self.selected_ = dict(self.head_.selected_)
        if self.by == "range":
            self.text_ = task.text
        self.temperature_ = 1.0
        if self.by == "folds":
            self.temperature_ = self._left_out_temperature(task)
            self._select("support", temperature=self.temperature_)

    def _left_out_temperature(self, task: Task) -> float:
        scores, labels = [], []
        for kept, scored in folds_of(task):
            scores.append(fit_on(registry.create(self.method), part_of(task, kept)).scores(task.X[scored]))
            labels.append(task.y[scored])
        return calibrate(np.concatenate(scores), np.concatenate(labels))

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        scores = self.head_._deciding(X)
        if self.by == "folds":
            return scores
        return in_range_of(scores, (self.logit_scale_ * X @ self.text_.T).astype(scores.dtype))

    def _logits(self, scores: Float[Array, "n C"]) -> Float[Array, "n C"]:
        if self.by == "range":
            return scores
        return self.head_._logits(scores) / scores.dtype.type(self.temperature_)

    def _expects(self) -> tuple[np.dtype, int]:
        return self.head_._expects() if hasattr(self, "head_") else super()._expects()
