"""Seven ways to set a knob: its fixed value, five kinds of labels to choose on, or an average over the grid.

| selector | looks at |
|---|---|
| fixed | nothing: the value that the method comes with |
| loo | the shots, each left out once |
| folds | the shots, one of every class left out at a time |
| few_shot_validation | at most four further labelled pictures per class |
| validation | the whole validation split |
| test | the test labels: a bound, not a method |
| ensemble | nothing: the class probabilities are averaged over the whole grid |

They work for every method that has a knob of its own (`kshot.methods.knob`) or declares `grids`, values to try for
its parameters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError, unknown
from kshot.methods import registry
from kshot.methods.base import Classifier, info_by_parameters, log_probabilities
from kshot.methods.evidence import Task, without_labels
from kshot.methods.knob import Knob, KnobWithHeads, KnobWithScores, balanced_fold_curve, leave_one_out_curve
from kshot.methods.parameters import AnchorScale, LogitScale
from kshot.solvers.rows import accuracy
from kshot.types import FREE_EVIDENCE, Array, Choice, Evidence, Labelled, MethodInfo

SELECTORS: dict[str, Evidence | None] = {
    "fixed": None,
    "loo": "support",
    "folds": "support",
    "few_shot_validation": "few_shot_validation",
    "validation": "validation",
    "test": "test",
    "ensemble": None,
}


@dataclass(frozen=True)
class ParameterKnob:
    """A parameter of a method as a knob: the method is fitted once per value."""

    method: Classifier
    parameter: str
    grid: Sequence[Any]

    @property
    def info(self) -> MethodInfo:
        return self.method.info

    def knob_name(self) -> str:
        return self.parameter

    def knob_grid(self) -> Sequence[Any]:
        return self.grid

    def knob_at(self, value: Any) -> Classifier:
        return self.method.with_params(**{self.parameter: value})

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return np.array([accuracy(scores, queries.y) for scores in scores_over_grid(self, task, queries.X)])


def knob_of(method: Classifier, name: str | None) -> Knob:
    """The method's own knob, or the parameter of that name with the values that the method declares for it."""
    if isinstance(method, Knob) and name in (None, method.knob_name()):
        return method
    if name is None or name not in method.grids:
        own = [method.knob_name()] if isinstance(method, Knob) else []
        raise InputError(
            unknown("knob", name or "", [*own, *method.grids], f"Those are the knobs of {method.info.key}.")
        )
    return ParameterKnob(method, name, method.grids[name])


def selector_curve(knob: Knob, task: Task, by: str, most_folds: int | None = None) -> Float[Array, " L"]:
    """The accuracy of every value of the grid on the selector's evidence, with at most about `most_folds` folds."""
    blind = without_labels(task)
    if by == "loo":
        return leave_one_out_curve(knob, blind)
    if by == "folds":
        return balanced_fold_curve(knob, blind, most_folds)
    return knob.knob_curve(blind, task.further[by])


def scores_over_grid(knob: Knob, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
    """The scores of the rows at every value, by the method's own shared work or by a fit per value."""
    if isinstance(knob, KnobWithScores):
        yield from knob.knob_scores(task, X)
        return
    assert isinstance(knob, KnobWithHeads), f"{knob.info.key} cannot be held at one value"
    for value in knob.knob_grid():
        yield fit_on(knob.knob_at(value), task).scores(X)


def fit_on(method: Classifier, task: Task) -> Classifier:
    """Fit on what the task holds of the evidence that the method sees, with its constants."""
    support = {"X": task.X, "y": task.y} if "support" in method.info.sees else {}
    views = task.views if method.info.views else None
    evidence: dict[str, Any] = {name: task.evidence(name) for name in method.info.sees - FREE_EVIDENCE}
    if "text" in method.info.sees:
        evidence["text"] = task.text
    classes = range(task.n_classes)
    return method.fit(**support, views=views, constants=task.constants, classes=classes, **evidence)


class Tuned(Classifier):
    """A method whose knob is set by a selector, or averaged over its grid (`by="ensemble"`).

    The chosen head is `heads_[0]` and can be saved as a head of its own. `by="ensemble"` keeps one head per value and
    averages their class probabilities.
    """

    method: Annotated[str, "Name of the method."] = "proker"
    knob: Annotated[str | None, "Name of the knob; None is the method's own."] = None
    by: Annotated[str, "Selector: " + ", ".join(SELECTORS) + "."] = "folds"
    logit_scale: LogitScale = None
    anchor_scale: AnchorScale = None

    @info_by_parameters
    def info(self) -> MethodInfo:
        if self.by not in SELECTORS:
            raise InputError(unknown("selector", self.by, SELECTORS, "Give one of them as by=…"))
        method = registry.create(self.method)
        inner, extra = method.info, SELECTORS[self.by]
        sees: frozenset[Evidence] = inner.sees if extra is None else frozenset({*inner.sees, extra})
        return replace(
            inner,
            key=f"{self.method}:{self.by}",
            title=f"{inner.title}, {knob_of(method, self.knob).knob_name()} by {self.by}",
            sees=sees,
            min_shots=max(2, inner.min_shots) if self.by in ("loo", "folds") else inner.min_shots,
            linear=False,
            closed_form=False,
            constants=frozenset(),
        )

    def _fit(self, task: Task) -> None:
        method = registry.create(self.method)
        knob = knob_of(method, self.knob)
        if self.by == "fixed":
            self.heads_ = [fit_on(method, task)]
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
        return self.heads_[0]._expects() if hasattr(self, "heads_") else super()._expects()
