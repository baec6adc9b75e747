"""The base class of all methods, a scikit-learn classifier."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from inspect import cleandoc, get_annotations
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import ArrayLike

from kshot.errors import HeadError, InputError, KshotError, not_fitted
from kshot.methods.evidence import Task, labelled, only_classes_with_shots, prepare, shared_unit_rows, warn_of_text
from kshot.methods.missing import fill_missing_classes, missing_class_rows
from kshot.methods.parameters import (
    Estimator,
    check_parameters,
    known_constants,
    parameter_names,
    parameters_section,
    used_constants,
)
from kshot.methods.shared_work import is_shared
from kshot.solvers.labels import encode_labels, given_classes, named_text
from kshot.types import FREE_EVIDENCE, Array, Choice, MethodInfo, Origin

M = TypeVar("M", bound="Classifier")


class _InfoByParameters:
    def __init__(self, describe: Callable[[Any], MethodInfo]) -> None:
        self.describe = describe

    def __get__(self, method: "Classifier | None", owner: type["Classifier"]) -> MethodInfo:
        if method is None:
            return self.describe(owner())
        check_parameters(method)
        return self.describe(method)


def info_by_parameters(describe: Callable[[Any], MethodInfo]) -> Any:
    """Decorate an `info` that depends on the method's parameters; on the class it is that of the defaults."""
    return _InfoByParameters(describe)


class _NoInfo:
    def __get__(self, method: "Classifier | None", owner: type["Classifier"]) -> None:
        """None on the class, as `help` asks for it there."""
        if method is not None:
            raise InputError(
                f"{owner.__name__} has no info. Write info = MethodInfo(key='{owner.__name__.lower()}', title=…) in "
                "the class, as in docs/add-a-method.md."
            )


@dataclass_transform(kw_only_default=True, eq_default=False)
class Classifier(Estimator):
    """A scikit-learn classifier of unit features; subclasses write `info`, their parameters and `_fit`.

    A subclass without an `__init__` becomes a dataclass: its annotated names that have a default are keyword-only
    parameters, whose descriptions are added to its docstring. A parameter of the base class that it sets
    (`epochs = 1`) has that default.

    Attributes
    ----------
    classes_ : (C,)
        The labels as they were given, in the order of the text's rows.
    coef_ : (C, d)
        Weights w of a linear head, whose scores are x·wᵀ + b.
    intercept_ : (C,)
        Biases b of a linear head.
    selected_ : dict of Choice
        Quantities that the fit chose, with the evidence they were chosen on; the encoder's constants that it used, and
        where they are from.

    Examples
    --------
    >>> from kshot.extend import Classifier, MethodInfo
    >>> from kshot.testing import problem
    >>> class Half(Classifier):
    ...     info = MethodInfo("half", "Half text, half shots")
    ...     def _fit(self, task):
    ...         self._set_linear((task.means + task.text) / 2)
    >>> data = problem()
    >>> print(f"{Half().fit(data.X, data.y, text=data.text).score(*data.test):.2f}")
    0.98
    """

    info: ClassVar[MethodInfo] = _NoInfo()  # pyright: ignore[reportAssignmentType]
    # Values worth trying for parameters, for the selectors of `kshot.methods.selectors`.
    grids: ClassVar[Mapping[str, Sequence[Any]]] = {}
    # A fitted array of the data's dtype whose last axis is the features.
    _like_data: ClassVar[str] = "weights_"
    classes_: Shaped[Array, " C"]
    selected_: dict[str, Choice]
    # A linear head: x·weights_ᵀ + bias_ decides, and times scale_ it is the score.
    weights_: Float[Array, "C d"]
    bias_: Float[Array, " C"]
    scale_: float = 1.0
    # Constants of the encoder that the method declares in `info.constants`.
    logit_scale_: float
    # Of heads that are not linear: which classes had shots and the rows of those that had none; the classes that
    # `among` chose.
    has_shots_: Bool[Array, " C"]
    missing_rows_: Float[Array, "U d"] | None = None
    subset_: Int[Array, " A"] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if any("__init__" in vars(base) and "__dataclass_fields__" not in vars(base) for base in cls.__mro__[:-1]):
            return
        known, own = getattr(cls, "__dataclass_fields__", {}), get_annotations(cls)
        # A dataclass would keep the inherited default of a parameter that is set without an annotation.
        cls.__annotations__ = own | {name: known[name].type for name in vars(cls) if name in known and name not in own}
        for name in get_annotations(cls):
            if name not in vars(cls):
                setattr(cls, name, field(init=False))
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        # Not from the cache: a class that arrives in another process gets its parameters after this.
        if vars(cls).get("__doc__") and parameter_names.__wrapped__(cls):
            words, head, examples = cleandoc(cls.__doc__ or "").partition("Examples\n")
            cls.__doc__ = f"{words.rstrip()}\n\n{parameters_section(cls)}\n\n{head}{examples}\n"

    def _fit(self, task: Task) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _fit: add one as in docs/add-a-method.md.")

    def _min_shots(self) -> int:
        return self.info.min_shots

    def fit(
        self: M,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        text: ArrayLike | Mapping[Any, ArrayLike] | None = None,
        classes: Sequence[Any] | None = None,
        views: ArrayLike | None = None,
        pool: tuple[ArrayLike, ArrayLike] | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        test: tuple[ArrayLike, ArrayLike] | None = None,
        queries: ArrayLike | None = None,
        few_shot_validation: tuple[ArrayLike, ArrayLike] | None = None,
        constants: Mapping[str, int | float] | None = None,
    ) -> M:
        """Fit on rows and their labels, and on text where the method reads it.

        Parameters
        ----------
        X : (N, d)
            Features of the shots; rows are scaled to unit length.
        y : (N,)
            Labels of any kind. With text and without `classes`, integers from 0 to C − 1 are numbers of the text's
            rows, and other numbers (from 1 on, booleans) are taken in sorted order. Names need `classes`, or text that
            carries its names.
        text : (C, d)
            One prototype per class: an array, a dict {name: row}, or a DataFrame with the names as its index.
        classes : C labels
            Names the rows of text in their order. Integers are labels like any other: with classes=[1, 0, 2] the label
            1 is row 0.
        views : (E, N, d)
            Augmented views of the shots, for methods that use them.
        pool, validation, few_shot_validation, test : (X, y)
            Further labelled rows; only reference points, which declare them, look at them.
        queries : (Q, d)
            The pictures to classify, for transductive methods.
        constants : numbers by name
            What is known of the encoder: `logit_scale` (100 of CLIP, not its logarithm), and `anchor_scale`, the norm
            of its text embeddings. They stand in for the parameters of those names that are None; without them, 100 and
            10 are assumed.
        """
        check_parameters(self)
        text, classes = named_text(text, classes)
        known = known_constants(self, constants or {})
        further = {"pool": pool, "validation": validation, "few_shot_validation": few_shot_validation, "test": test}
        further |= {"text": text, "views": views, "queries": queries}
        task = prepare(self.info, self._min_shots(), X, y, classes=classes, constants=known, **further)
        if self.info.sees >= FREE_EVIDENCE and task.counts.all() and not is_shared():
            warn_of_text(task)
        self.selected_ = {}
        for left_over in ("has_shots_", "missing_rows_", "subset_", "scale_"):
            vars(self).pop(left_over, None)
        self.classes_ = task.classes
        used = used_constants(self, known)
        for name, choice in used.items():
            setattr(self, f"{name}_", choice.value)
        if self._min_shots() and not task.counts.all():
            part = only_classes_with_shots(task)
            self.classes_ = part.classes
            self._fit_whole(part)
            self._join_text(task)
            self.classes_ = task.classes
        else:
            self._fit_whole(task)
        # A head that assumes another value has recorded it itself.
        self.selected_ |= {
            name: choice for name, choice in used.items() if choice.from_ != "assumed" or name not in self.selected_
        }
        return self

    def _fit_whole(self, task: Task) -> None:
        """`_fit`, which must leave what the scores are made from."""
        self._fit(task)
        try:
            _, dimension = self._expects()
        except AttributeError:
            dimension = 0
        linear, n_classes = self.info.linear, task.n_classes
        if linear and getattr(self, "weights_", np.empty(0)).shape != (n_classes, dimension):
            missing = f"sets no weights of shape {n_classes, dimension}: call self._set_linear(weights, bias) in it"
            raise HeadError(f"{self._where()} {missing}, or declare linear=False in info and write _scores.")
        if not linear and type(self)._scores is Classifier._scores:
            raise HeadError(f"{self._where()} is of a head with linear=False, which needs a _scores(self, X) too.")
        if not dimension:
            missing = f"sets no array {self._like_data!r}, from which the data's dtype and dimension are read"
            raise HeadError(f"{self._where()} {missing}: set it, or name a fitted array of width d in _like_data.")

    def _where(self) -> str:
        """The name, file and line of `_fit`."""
        code = inspect.unwrap(type(self)._fit).__code__
        return f"{type(self).__name__}._fit ({code.co_filename}:{code.co_firstlineno})"

    def _join_text(self, task: Task) -> None:
        """Add the classes without shots by their text; heads with a text side of their own override this."""
        has_shots = task.counts > 0
        slope, rows = missing_class_rows(self._scores(task.X), task.X, task.text, has_shots)
        self._select("support", text_slope=slope)
        if self.info.linear:
            self.weights_ = fill_missing_classes(self.weights_, rows, has_shots)
            self.bias_ = fill_missing_classes(self.bias_, np.zeros(len(rows), self.bias_.dtype), has_shots)
        else:
            self.has_shots_, self.missing_rows_ = has_shots, rows

    def among(self: M, classes: ArrayLike) -> M:
        """A copy of the head restricted to these of its classes, in this order."""
        wanted = encode_labels("classes", given_classes(classes), self.classes_)
        head = copy(self)
        head.classes_ = self.classes_[wanted]
        if self.info.linear:
            head.weights_, head.bias_ = self.weights_[wanted], self.bias_[wanted]
        else:
            head.subset_ = wanted if self.subset_ is None else self.subset_[wanted]
        return head

    @property
    def n_features_in_(self) -> int:
        return self._expects()[1]

    def scores(self, X: ArrayLike) -> Float[Array, "n C"]:
        """One logit per class; the largest is predicted, and their softmax is the probabilities."""
        return self._logits(self._deciding(X))

    def _deciding(self, X: ArrayLike) -> Float[Array, "n C"]:
        """Scores before `scale_`; the largest is predicted, the first of equals."""
        dtype, dimension = self._expects()
        rows = shared_unit_rows(X, "the query", dtype)
        if rows.shape[1] != dimension:
            raise InputError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {dimension} features as "
                "input: the query must have the dimension of what the head was fitted on."
            )
        scores = self._scores(rows)
        if self.missing_rows_ is not None:
            scores = fill_missing_classes(scores.T, self.missing_rows_ @ rows.T, self.has_shots_).T
        return scores if self.subset_ is None else scores[:, self.subset_]

    def decision_function(self, X: ArrayLike) -> Float[Array, "n C"] | Float[Array, " n"]:
        """The scores; for two classes the second's minus the first's, as in scikit-learn."""
        scores = self.scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: ArrayLike) -> Float[Array, "n C"]:
        """Softmax of the scores."""
        from scipy.special import softmax

        return softmax(self.scores(X), axis=1)

    def predict(self, X: ArrayLike) -> Shaped[Array, " n"]:
        return self.predict_with_scores(X)[0]

    def predict_with_scores(self, X: ArrayLike) -> tuple[Shaped[Array, " n"], Float[Array, "n C"]]:
        """The predictions and the scores."""
        deciding = self._deciding(X)
        return self.classes_[self._winners(deciding)], self._logits(deciding)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy; with `sample_weight` (n,), the share of the weight that is on right answers."""
        numbers = labelled("the query", X, y, self._expects()[0], self.classes_).y
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(self._winners(self._deciding(X)) == numbers, weights=weights))

    def _winners(self, scores: Float[Array, "n C"]) -> Int[Array, " n"]:
        best = scores.argmax(axis=1)
        # argmax returns NaN's place where there is one, so checking the winners is enough.
        finite = np.isfinite(scores[np.arange(len(best)), best])
        if not finite.all():
            raise KshotError(
                f"scores are not finite in {np.count_nonzero(~finite)} of {len(best)} queries: {self!r} has NaN or "
                "infinite weights. Change its parameters, or check the data that it was fitted on."
            )
        return best

    def _scores(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        return X @ self.weights_.T + self.bias_

    def to_torch(self) -> Any:
        """An `nn.Module` from features (n, d) to scores (n, C), whose parameters are the fitted arrays.

        Its answers are those of `scores`, and its `classes` are `classes_`. Heads without a formula of their own that
        are not linear (TransCLIP, calibrated heads) raise an error.
        """
        from kshot.methods.torch_head import torch_head

        return torch_head(self)

    def _torch_scores(self, fitted: Any, X: Any) -> Any:
        """`_scores` for tensors: unit rows X, and a module that has the fitted arrays."""
        if not self.info.linear:
            raise InputError(
                f"{self.info.title} has no form in torch: it is not one linear map. Choose CLAP, LPP or another head, "
                "or export its answers."
            )
        return X @ fitted.weights_.T + fitted.bias_

    def _logits(self, scores: Float[Array, "n C"]) -> Float[Array, "n C"]:
        """Logits of what `_scores` returns. Predictions use `_scores`: rounding here may make two classes equal."""
        return scores if self.scale_ == 1 else scores.dtype.type(self.scale_) * scores

    @property
    def coef_(self) -> Float[Array, "C d"]:
        return _scaled(self.scale_, self.weights_)

    @coef_.setter
    def coef_(self, coef: Float[Array, "C d"]) -> None:
        self.weights_ = coef if self.scale_ == 1 else coef / self.scale_

    @property
    def intercept_(self) -> Float[Array, " C"]:
        return _scaled(self.scale_, self.bias_)

    @intercept_.setter
    def intercept_(self, intercept: Float[Array, " C"]) -> None:
        self.bias_ = intercept if self.scale_ == 1 else intercept / self.scale_

    def _expects(self) -> tuple[np.dtype, int]:
        """dtype and dimension of the data that the head was fitted on."""
        if not hasattr(self, "classes_"):
            raise not_fitted(type(self).__name__)
        array = getattr(self, self._like_data)
        return array.dtype, array.shape[-1]

    def _select(self, from_: Origin, **values: Any) -> None:
        """Add fitted quantities to `selected_`, with the evidence that they were chosen on."""
        self.selected_ |= {name: Choice(value, from_) for name, value in values.items()}

    def _set_linear(
        self, weights: Float[Array, "C d"], bias: Float[Array, " C"] | None = None, scale: float = 1.0
    ) -> None:
        """Logits are scale·(x·weightsᵀ + bias)."""
        self.weights_ = weights
        self.bias_ = np.zeros(len(weights), weights.dtype) if bias is None else bias
        self.scale_ = scale


def log_probabilities(probabilities: Float[Array, "n C"]) -> Float[Array, "n C"]:
    """Logits whose softmax is these probabilities; zeros become the smallest number."""
    return np.log(np.maximum(probabilities, np.finfo(probabilities.dtype).tiny))


def _scaled(scale: float, array: Array) -> Array:
    """scale·array; read-only, because a change of the product would not reach the head."""
    if scale == 1:
        return array
    product = array.dtype.type(scale) * array
    product.flags.writeable = False
    return product


def plain_value(value: Any, what: str) -> Any:
    """The value with numpy's numbers and arrays as Python's numbers and lists, which JSON can keep in records and head
    files; `what` names it in the error."""
    try:
        return json.loads(json.dumps(value, default=_unpacked))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} cannot be kept ({error}). Use numbers, text, None, and arrays, lists or dicts of them."
        ) from error


def plain_choices(selected: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A method's `selected_`: for each name its value and the evidence that it was chosen from."""
    for name, choice in selected.items():
        if not isinstance(choice, Choice):
            raise InputError(
                f"selected_['{name}'] is {choice!r}, not a Choice. Write Choice(value, from_) of kshot.types."
            )
    pairs = {name: {"value": choice.value, "from_": choice.from_} for name, choice in selected.items()}
    return plain_value(pairs, "selected_")


def _unpacked(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")
