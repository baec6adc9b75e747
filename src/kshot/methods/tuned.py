"""Any method with a knob, set by any selector."""

import numpy as np
from jaxtyping import Float

from kshot.methods import registry
from kshot.methods.base import Classifier, log_probabilities
from kshot.methods.evidence import Task
from kshot.methods.knob import Knob
from kshot.methods.parameters import Positive
from kshot.methods.selectors import SELECTORS, KnobWithHeads, check_selector, fit_on, knob_of, selector_curve
from kshot.types import ENCODER_CONSTANTS, Array, Choice, Evidence, MethodInfo


class Tuned(Classifier):
    """`method` with its `knob` (None: its own) set `by` a selector of `kshot.methods.selectors`.

    `by="ensemble"` does not choose: it keeps one head per value and averages their class probabilities. The head
    that was chosen is `heads_[0]` and can be saved as a head of its own.
    """

    heads_: list[Classifier]

    def __init__(
        self,
        method: str = "proker",
        knob: str | None = None,
        by: str = "folds",
        logit_scale: Positive | None = None,
        anchor_scale: Positive | None = None,
    ):
        self.method = method
        self.knob = knob
        self.by = by
        self.logit_scale = logit_scale
        self.anchor_scale = anchor_scale

    @property
    def info(self) -> MethodInfo:
        check_selector(self.by)
        inner, extra = self._method().info, SELECTORS[self.by]
        sees: frozenset[Evidence] = inner.sees if extra is None else frozenset({*inner.sees, extra})
        title = f"{inner.title}, {self._knob().knob_name()} by {self.by}"
        least = max(2, inner.min_shots) if self.by in ("loo", "folds") else inner.min_shots
        return MethodInfo(
            f"{self.method}:{self.by}",
            title,
            sees,
            least,
            inner.paper,
            linear=False,
            closed_form=False,
            views=inner.views,
            rotation_free=inner.rotation_free,
            constants=ENCODER_CONSTANTS,
        )

    def _method(self) -> Classifier:
        return registry.create(self.method)

    def _knob(self) -> Knob:
        return knob_of(self._method(), self.knob)

    def _fit(self, task: Task) -> None:
        knob = self._knob()
        if self.by == "fixed":
            self.heads_ = [fit_on(self._method(), task)]
            self.selected_ = dict(self.heads_[0].selected_)
            return
        assert isinstance(knob, KnobWithHeads)
        values = list(knob.knob_grid())
        if self.by == "ensemble":
            self.selected_ = {"averaged": Choice(len(values), "fixed")}
        else:
            curve = selector_curve(knob, task, self.by)
            values, from_ = [values[int(curve.argmax())]], SELECTORS[self.by]
            assert from_ is not None
            self.selected_ = {knob.knob_name(): Choice(values[0], from_), "curve": Choice(curve.tolist(), from_)}
        self.heads_ = [fit_on(knob.knob_at(value), task) for value in values]

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        if self.by != "ensemble":
            return self.heads_[0]._deciding(X)
        return np.mean([head.predict_proba(X) for head in self.heads_], axis=0)

    def _logits(self, scores: Float[Array, "n C"]) -> Float[Array, "n C"]:
        return log_probabilities(scores) if self.by == "ensemble" else self.heads_[0]._logits(scores)

    def _expects(self) -> tuple[np.dtype, int]:
        if not hasattr(self, "heads_"):
            return self._fitted_on("heads_")
        return self.heads_[0]._expects()
