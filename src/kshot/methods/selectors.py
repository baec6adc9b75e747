"""Setting a knob is one idea with seven ways: its fixed value, five kinds of labels to choose by, or no choice at all.

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
its parameters; no method knows of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float

from kshot.errors import InputError, unknown
from kshot.methods.base import Classifier
from kshot.methods.evidence import Task
from kshot.methods.knob import Knob, balanced_fold_curve, leave_one_out_curve
from kshot.types import Array, Evidence, Labelled, MethodInfo

SELECTORS: dict[str, Evidence | None] = {
    "fixed": None,
    "loo": "support",
    "folds": "support",
    "few_shot_validation": "few_shot_validation",
    "validation": "validation",
    "test": "test",
    "ensemble": None,
}


@runtime_checkable
class KnobWithHeads(Knob, Protocol):
    """A knob that can be held at one value."""

    def knob_at(self, value: Any) -> Classifier:
        """The unfitted method with its knob at this value."""
        ...


@runtime_checkable
class KnobWithScores(Knob, Protocol):
    """A knob whose scores at all values share work."""

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        """The scores at every value in turn; an array may be overwritten by the next."""
        ...


@dataclass(frozen=True)
class ParameterKnob:
    """Any parameter of any method as a knob: the method is fitted once per value."""

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
        return type(self.method)(**{**self.method.get_params(), self.parameter: value})

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return np.array([hits(scores, queries.y) for scores in scores_over_grid(self, task, queries.X)])


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


def check_selector(by: str) -> None:
    if by not in SELECTORS:
        raise InputError(unknown("selector", by, SELECTORS, "Give one of them as by=…"))


def selector_curve(knob: Knob, task: Task, by: str, most_folds: int | None = None) -> Float[Array, " L"]:
    """How good every value of the grid looks to a selector that chooses; of many folds, some may stand for all."""
    blind = replace(task, validation=None, few_shot_validation=None, test=None)
    if by == "loo":
        return leave_one_out_curve(knob, blind)
    if by == "folds":
        return balanced_fold_curve(knob, blind, most_folds)
    queries = getattr(task, by)
    assert queries is not None
    return knob.knob_curve(blind, queries)


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
    others = [name for name in get_args(Evidence) if name in method.info.sees and name != "support"]
    views = task.views if method.info.views else None
    evidence = {name: getattr(task, name) for name in others}
    classes = range(task.n_classes)
    return method.fit(**support, views=views, constants=task.constants, classes=classes, **evidence)


def probabilities(scores: Float[Array, "n C"]) -> Float[Array, "n C"]:
    from scipy.special import softmax

    return softmax(scores, axis=1)


def hits(scores: Float[Array, "n C"], y: Array) -> float:
    """The share of rows whose largest score is at their label."""
    return float(np.mean(scores.argmax(axis=1) == y))
