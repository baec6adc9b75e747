"""One knob under every selector at once, for the atlas of knobs."""

from typing import Annotated

import numpy as np
from jaxtyping import Float

from kshot.methods import registry
from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task
from kshot.methods.knob import Knob, KnobWithFolds, KnobWithLeaveOneOut
from kshot.methods.parameters import AnchorScale, Count, LogitScale
from kshot.methods.selectors import fit_on, knob_of, scores_over_grid, selector_curve
from kshot.solvers.rows import accuracy
from kshot.types import Array, Choice, Evidence, MethodInfo

LABELLED = ("few_shot_validation", "validation", "test")


class KnobSurvey(Classifier):
    """The accuracy of every value of a knob on the test set, and under each selector; an oracle.

    Its own predictions are those of the best value on the test labels. Leave-one-out is measured where the method
    needs no refit per shot.
    """

    _like_data = "queries_"
    method: Annotated[str, "Name of the method."] = "proker"
    knob: Annotated[str | None, "Name of the knob; None is the method's own."] = None
    most_folds: Annotated[Count, "Largest number of folds, each a refit; they are taken at equal distances."] = 16
    logit_scale: LogitScale = None
    anchor_scale: AnchorScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        method = registry.create(self.method)
        sees: frozenset[Evidence] = frozenset({*method.info.sees, "few_shot_validation", "validation", "test"})
        title = f"{method.info.title}: {knob_of(method, self.knob).knob_name()}"
        return MethodInfo(f"{self.method}:survey", title, sees, 1, method.info.paper, linear=False)

    def _fit(self, task: Task) -> None:
        from scipy.special import softmax

        method = registry.create(self.method)
        knob = knob_of(method, self.knob)
        parts = [task.evidence(name) for name in LABELLED]
        ends = np.cumsum([len(part.y) for part in parts])[:-1]
        curves: list[list[float]] = []
        average, best = 0.0, -1.0
        for scores in scores_over_grid(knob, task, np.concatenate([part.X for part in parts])):
            pieces = np.split(scores, ends)
            curves.append([accuracy(piece, part.y) for piece, part in zip(pieces, parts, strict=True)])
            average = average + softmax(pieces[-1], axis=1)
            if curves[-1][-1] > best:
                best, self.scores_ = curves[-1][-1], pieces[-1].copy()
        test = parts[-1]
        self.queries_ = test.X
        self.selected_ = {"grid": Choice(list(knob.knob_grid()), "fixed")}
        for name, curve in zip(LABELLED, np.transpose(curves), strict=True):
            self.selected_[name] = Choice(curve.tolist(), name)
        self.selected_["ensemble"] = Choice(accuracy(np.asarray(average), test.y), "test")
        self._add_curves_of_shots(task, knob)
        if task.counts.min() >= method.info.min_shots:
            head = fit_on(method, task)
            own = (head.selected_.get(name) for name in knob.knob_name().split(", "))
            if not any(choice and choice.from_ == "support" for choice in own):
                self.selected_["fixed"] = Choice(accuracy(head.scores(test.X), test.y), "test")

    def _add_curves_of_shots(self, task: Task, knob: Knob) -> None:
        if task.counts.min() < 2:
            return
        if isinstance(knob, KnobWithLeaveOneOut | KnobWithFolds):
            self.selected_["loo"] = Choice(selector_curve(knob, task, "loo").tolist(), "support")
        folds = selector_curve(knob, task, "folds", self.most_folds)
        self.selected_["folds"] = Choice(folds.tolist(), "support")

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        place = (X @ self.queries_.T).argmax(axis=1)
        return self.scores_[place]
