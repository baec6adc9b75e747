"""One knob under every selector at once: what the atlas keeps of a cell."""

import numpy as np
from jaxtyping import Float

from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.knob import Knob, KnobWithFolds, KnobWithLeaveOneOut
from kshot.methods.parameters import Count, Positive
from kshot.methods.selectors import fit_on, hits, knob_of, probabilities, scores_over_grid, selector_curve
from kshot.types import ENCODER_CONSTANTS, Array, Choice, Evidence, MethodInfo

LABELLED = ("few_shot_validation", "validation", "test")


class KnobSurvey(Classifier):
    """Every value of a knob on the test set, and how each selector that may choose would see it; an oracle.

    Its own predictions are those of the best value on the test labels. Leave-one-out is asked where the method
    answers without a refit per shot. At most `most_folds` folds are asked, at equal distances: a refit each is much for
    a head that is slow to train.
    """

    scores_: Float[Array, "n C"]
    queries_: Float[Array, "n d"]

    def __init__(
        self,
        method: str = "proker",
        knob: str | None = None,
        most_folds: Count = 16,
        logit_scale: Positive | None = None,
        anchor_scale: Positive | None = None,
    ):
        self.method = method
        self.knob = knob
        self.most_folds = most_folds
        self.logit_scale = logit_scale
        self.anchor_scale = anchor_scale

    @property
    def info(self) -> MethodInfo:
        method = self._method()
        sees: frozenset[Evidence] = frozenset({*method.info.sees, "few_shot_validation", "validation", "test"})
        title = f"{method.info.title}: {knob_of(method, self.knob).knob_name()}"
        return MethodInfo(
            f"{self.method}:survey", title, sees, 1, method.info.paper, linear=False, constants=ENCODER_CONSTANTS
        )

    def _method(self) -> Classifier:
        return registry.create(self.method)

    def _fit(self, task: Task) -> None:
        method = self._method()
        knob = knob_of(method, self.knob)
        parts = [getattr(task, name) for name in LABELLED]
        ends = np.cumsum([len(part.y) for part in parts])[:-1]
        curves: list[list[float]] = []
        average, best = 0.0, -1.0
        for scores in scores_over_grid(knob, task, np.concatenate([part.X for part in parts])):
            pieces = np.split(scores, ends)
            curves.append([hits(piece, part.y) for piece, part in zip(pieces, parts, strict=True)])
            average = average + probabilities(pieces[-1])
            if curves[-1][-1] > best:
                best, self.scores_ = curves[-1][-1], pieces[-1].copy()
        test = parts[-1]
        self.queries_ = test.X
        self.selected_ = {"grid": Choice(list(knob.knob_grid()), "fixed")}
        for name, curve in zip(LABELLED, np.transpose(curves), strict=True):
            self.selected_[name] = Choice(curve.tolist(), name)
        self.selected_["ensemble"] = Choice(hits(np.asarray(average), test.y), "test")
        self._ask_the_shots(task, knob)
        if task.counts.min() >= method.info.min_shots:
            head = fit_on(method, task)
            own = (head.selected_.get(name) for name in knob.knob_name().split(", "))
            if not any(choice and choice.from_ == "support" for choice in own):
                self.selected_["fixed"] = Choice(hits(head.scores(test.X), test.y), "test")

    def _ask_the_shots(self, task: Task, knob: Knob) -> None:
        if task.counts.min() < 2:
            return
        if isinstance(knob, KnobWithLeaveOneOut | KnobWithFolds):
            self.selected_["loo"] = Choice(selector_curve(knob, task, "loo").tolist(), "support")
        folds = selector_curve(knob, task, "folds", self.most_folds)
        self.selected_["folds"] = Choice(folds.tolist(), "support")

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        place = (X @ self.queries_.T).argmax(axis=1)
        return self.scores_[place]

    def _expects(self) -> tuple[np.dtype, int]:
        return self._fitted_on("queries_")
