"""Any method with its probabilities put right; its predictions stay as they are."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError
from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task, part_of
from kshot.methods.parameters import Positive
from kshot.methods.selectors import fit_on
from kshot.solvers.leaving_out import balanced_folds, ranks_by_text
from kshot.solvers.rows import shot_numbers
from kshot.solvers.temperature import calibrate, in_range_of
from kshot.types import ENCODER_CONSTANTS, Array, Choice, MethodInfo


class Calibrated(Classifier):
    """`method` with one temperature for all pictures (`by="folds"`), or with the range of zero-shot logits for each
    picture (`by="range"`, which is training-free and chooses nothing).

    Parameters
    ----------
    method : str
        The name of the method.
    by : "folds" or "range"
        Folds leave one shot of every class out in turn: the method is fitted again on the others, and the temperature
        has the best likelihood on what was left out. The range is that of the picture's zero-shot logits.
    logit_scale : float or None
        Cosines times this are logits; None is the encoder's, 100 where none is known.
    anchor_scale : float
        Norm of the encoder's text embeddings, for methods that take it.
    """

    head_: Classifier
    text_: Float[Array, "C d"]
    temperature_: float
    logit_scale_: float

    def __init__(
        self,
        method: str = "loo_blend",
        by: Literal["folds", "range"] = "folds",
        logit_scale: Positive | None = None,
        anchor_scale: Positive | None = None,
    ):
        self.method = method
        self.by = by
        self.logit_scale = logit_scale
        self.anchor_scale = anchor_scale

    @property
    def info(self) -> MethodInfo:
        inner = self._method().info
        if self.by == "range" and "text" not in inner.sees:
            raise InputError(f"{self.method} reads no text, so there is no zero-shot range; give by='folds'.")
        if self.by == "folds" and "support" not in inner.sees:
            raise InputError(f"{self.method} reads no shots that could be left out; give by='range'.")
        return MethodInfo(
            f"{self.method}:calibrated-{self.by}",
            f"{inner.title}, calibrated by {self.by}",
            inner.sees,
            inner.min_shots + (self.by == "folds"),
            inner.paper,
            linear=False,
            closed_form=inner.closed_form,
            views=inner.views,
            rotation_free=inner.rotation_free,
            constants=ENCODER_CONSTANTS,
        )

    def _method(self) -> Classifier:
        return registry.create(self.method)

    def _fit(self, task: Task) -> None:
        self.head_ = fit_on(self._method(), task)
        self.selected_ = dict(self.head_.selected_)
        self.text_ = task.text
        self.temperature_ = self._left_out_temperature(task) if self.by == "folds" else 1.0
        if self.by == "folds":
            self.selected_["temperature"] = Choice(self.temperature_, "support")

    def _left_out_temperature(self, task: Task) -> float:
        number = ranks_by_text(task.X, task.y, task.text) if len(task.text) else shot_numbers(task.y)
        scores, labels = [], []
        for kept, asked in balanced_folds(number, task.y):
            scores.append(fit_on(self._method(), part_of(task, kept)).scores(task.X[asked]))
            labels.append(task.y[asked])
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
        if not hasattr(self, "head_"):
            return self._fitted_on("head_")
        return self.head_._expects()
