"""The scikit-learn-style shell around every method."""

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError, KshotError
from kshot.methods.evidence import Task, labelled, prepare
from kshot.solvers.rows import unit_rows
from kshot.types import Array, Choice, MethodInfo

M = TypeVar("M", bound="Classifier")


class Classifier:
    """Parameters in, fitted head out; subclasses write `info` and `_fit`.

    It follows scikit-learn's conventions by hand instead of inheriting `BaseEstimator`, because importing
    scikit-learn takes longer than most of these heads take to fit and every command would pay for it.
    """

    # Values worth trying for parameters, for the selectors of `kshot.methods.selectors`.
    grids: ClassVar[Mapping[str, Sequence[Any]]] = {}
    classes_: Int[Array, " C"]
    coef_: Float[Array, "C d"]
    intercept_: Float[Array, " C"]
    selected_: dict[str, Choice]

    @property
    def info(self) -> MethodInfo:
        raise NotImplementedError(f"{type(self).__name__} must say what it sees; see docs/add-a-method.md.")

    def _fit(self, task: Task) -> None:
        raise NotImplementedError(f"{type(self).__name__} must fit; see docs/add-a-method.md.")

    def _min_shots(self) -> int:
        return self.info.min_shots

    def fit(
        self: M,
        X: Any = None,
        y: Any = None,
        *,
        text: Any = None,
        views: Any = None,
        pool: Any = None,
        validation: Any = None,
        test: Any = None,
        queries: Any = None,
        few_shot_validation: Any = None,
    ) -> M:
        """Fit on X (N, d) with labels y in 0..C−1, text prototypes (C, d), and optional views (E, N, d).

        `pool`, `validation`, `few_shot_validation` and `test` are (X, y) pairs, used only by the reference points
        that declare them; `queries` (Q, d) are the pictures to classify, used only by transductive methods.
        """
        task = prepare(
            self.info,
            self._min_shots(),
            X,
            y,
            text=text,
            views=views,
            pool=pool,
            validation=validation,
            test=test,
            queries=queries,
            few_shot_validation=few_shot_validation,
        )
        self.classes_ = np.arange(task.n_classes)
        self.selected_ = {}
        self._fit(task)
        return self

    def decision_function(self, X: Any) -> Float[Array, "n C"]:
        """One score per class; the largest wins, the first of equals."""
        dtype, dimension = self._expects()
        rows = unit_rows(X, "the query", dtype)
        if rows.shape[1] != dimension:
            raise InputError(
                f"the query has dimension {rows.shape[1]} but the head was fitted on {dimension}."
            )
        return self._scores(rows)

    def predict(self, X: Any) -> Int[Array, " n"]:
        scores = self.decision_function(X)
        best = scores.argmax(axis=1)
        # NaN wins every argmax, so the winners tell about all scores at a row's cost.
        finite = np.isfinite(scores[np.arange(len(best)), best])
        if not finite.all():
            raise KshotError(
                f"scores are not finite in {np.count_nonzero(~finite)} of {len(best)} queries: {self!r} has learnt NaN "
                "or infinite values. Change its parameters, or look at the data that it was fitted on."
            )
        return best

    def score(self, X: Any, y: Any) -> float:
        labels = labelled("the query", X, y, self._expects()[0], len(self.classes_)).y
        return float(np.mean(self.predict(X) == labels))

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        return X @ self.coef_.T + self.intercept_

    def _expects(self) -> tuple[np.dtype, int]:
        return self._fitted_on("coef_")

    def _fitted_on(self, attribute: str) -> tuple[np.dtype, int]:
        """dtype and dimension of the data, read off a fitted array whose last axis is the features."""
        if not hasattr(self, "classes_"):
            raise InputError(f"this {type(self).__name__} is not fitted yet; call fit first.")
        array = getattr(self, attribute)
        return array.dtype, array.shape[-1]

    def _set_linear(self, coef: Float[Array, "C d"], intercept: Array | None = None) -> None:
        self.coef_ = coef
        self.intercept_ = np.zeros(len(coef), coef.dtype) if intercept is None else intercept

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    def set_params(self: M, **params: Any) -> M:
        allowed = parameter_names(type(self))
        for name, value in params.items():
            if name not in allowed:
                raise InputError(
                    f"{type(self).__name__} has no parameter '{name}'; it has {', '.join(allowed) or 'none'}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({shown})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )


@cache
def parameter_names(cls: type) -> tuple[str, ...]:
    signature = inspect.signature(cls)
    return tuple(p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD)
