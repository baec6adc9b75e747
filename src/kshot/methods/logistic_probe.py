"""Logistic probe: multinomial logistic regression on the shots alone, the paper's text-free reference."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float

from kshot.methods.base import Classifier, info_by_parameters
from kshot.methods.evidence import Task
from kshot.methods.knob import held_out_curve
from kshot.methods.parameters import Count, NotNegative, Positive
from kshot.solvers.folds import balanced_folds
from kshot.solvers.logistic import left_out_accuracies, logistic_path
from kshot.solvers.rows import accuracy, shot_numbers
from kshot.stats.selected import curve_name
from kshot.types import Array, Evidence, Labelled, MethodInfo

INFO = MethodInfo(
    key="logistic_probe",
    title="Logistic probe",
    sees=frozenset({"support"}),
    min_shots=2,
    paper="paper, Table “text-free reference points”",
    closed_form=False,
)
STRENGTHS = 10.0 ** np.arange(-2, 5)
# Enough left-out shots to tell the strengths apart; where there are more, some folds are left out.
MOST_SCORED = 800
# From so many shots per class on, a fold starts from the weights of all shots.
WARM_SHOTS = 8


class LogisticProbe(Classifier):
    """Softmax regression with an L2 penalty and a free bias; reads no text.

    The inverse penalty comes from 1e-2 … 1e4 by decades: by balanced folds (`tune="loo"`: each leaves one shot of every
    class out, up to about 800 shots in all), or by the test labels (`tune="test"`); or it is `strength`
    (`tune="fixed"`).

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> head = kshot.LogisticProbe().fit(data.X, data.y)
    >>> print(f"{head.score(*data.test):.2f}")
    1.00
    """

    tune: Annotated[Literal["loo", "test", "fixed"], "Evidence the inverse penalty is chosen on."] = "loo"
    strength: Annotated[Positive, 'The inverse penalty, for `tune="fixed"`.'] = 1.0
    tolerance: Annotated[NotNegative, "Stop when the gradient has fallen to this share of its size at zero."] = 1e-3
    max_iterations: Annotated[Count, "Stop after so many steps."] = 300

    @info_by_parameters
    def info(self) -> MethodInfo:
        if self.tune == "test":
            sees: frozenset[Evidence] = frozenset({"support", "test"})
            title = "Logistic probe (test-tuned)"
            return replace(INFO, key="logistic_probe_test", title=title, sees=sees, min_shots=1)
        if self.tune == "fixed":
            title = f"Logistic probe (strength {self.strength:g})"
            return replace(INFO, key="logistic_probe_fixed", title=title, min_shots=1)
        return INFO

    def _fit(self, task: Task) -> None:
        if self.tune == "fixed":
            self._select("fixed", strength=self.strength)
            self._keep(self._path(task, np.array([self.strength]))[0], task.X.dtype)
            return
        path = self._path(task)
        if self.tune == "test":
            curve, evidence = _accuracies(path, task.test), "test"
        else:
            curve, evidence = self._left_out_curve(task, path), "support"
        best = int(curve.argmax())
        self._select(evidence, **{"strength": float(STRENGTHS[best]), curve_name(evidence): curve.tolist()})
        self._keep(path[best], task.X.dtype)

    def _keep(self, path: Float[Array, "C e"], dtype: np.dtype) -> None:
        weights = path.astype(dtype)
        self._set_linear(weights[:, :-1].copy(), weights[:, -1].copy())

    def knob_name(self) -> str:
        return "strength"

    def knob_grid(self) -> Sequence[float]:
        return STRENGTHS.tolist()

    def knob_at(self, value: float) -> "LogisticProbe":
        return self.with_params(tune="fixed", strength=value)

    def knob_scores(self, task: Task, X: Float[Array, "n d"]) -> Iterator[Float[Array, "n C"]]:
        for w in self._path(task):
            yield X @ w[:, :-1].T + w[:, -1]

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return _accuracies(self._path(task), queries)

    def knob_loo_curve(self, task: Task) -> Float[Array, " L"]:
        return self._left_out_curve(task, self._path(task))

    def _left_out_curve(self, task: Task, path: Float[Array, "L C e"]) -> Float[Array, " L"]:
        folds = balanced_folds(shot_numbers(task.y), task.y, MOST_SCORED)
        if len(task.y) > MOST_SCORED and task.counts.min() >= WARM_SHOTS:
            return left_out_accuracies(task.X, task.y, STRENGTHS, path, folds)
        return held_out_curve(self, task, list(folds))

    def _path(self, task: Task, strengths: Float[Array, " L"] = STRENGTHS) -> Float[Array, "L C e"]:
        limits = {"tolerance": self.tolerance, "max_iterations": self.max_iterations}
        return logistic_path(task.X, task.y, task.n_classes, strengths, **limits)


def _accuracies(path: Float[Array, "L C e"], queries: Labelled) -> Float[Array, " L"]:
    return np.array([accuracy(queries.X @ w[:, :-1].T + w[:, -1], queries.y) for w in path])
