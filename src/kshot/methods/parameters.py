"""Parameters of a method: fields of its class, or arguments of its `__init__`. They are checked here before every fit,
and read, set and routed as scikit-learn does.

The annotation says what is allowed: `int`, `float`, `bool`, `str`, `None`, a `Literal`, `list[...]`, any union of
these, and `Annotated[..., Range(...)]` for bounds. Text in `Annotated[..., "Passes over the shots."]` describes the
parameter; docstrings and report pages show it. A parameter without an annotation is not checked.

`Estimator` is written by hand instead of inheriting scikit-learn's `BaseEstimator`: importing scikit-learn takes about
five times as long as `kshot --help` altogether and longer than most of these heads take to fit, and every command and
worker would pay for it. It is imported where only its users arrive.
"""

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from kshot.errors import InputError
from kshot.types import DATASET_CONSTANTS, ENCODER_CONSTANTS, Choice, EncoderConstants


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`; `above` leaves `low` itself out."""

    low: int | float = -math.inf
    high: int | float = math.inf
    above: bool = False

    def holds(self, value: Any) -> bool:
        return bool((value > self.low if self.above else value >= self.low) and value <= self.high)

    def __str__(self) -> str:
        if math.isfinite(self.high):
            return f"{'above' if self.above else 'from'} {self.low} to {self.high}"
        return f"above {self.low}" if self.above else f"of at least {self.low}"


Count: TypeAlias = Annotated[int, Range(1)]
Seed: TypeAlias = Annotated[int, Range(0, 2**32 - 1)]
Positive: TypeAlias = Annotated[float, Range(0, above=True)]
NotNegative: TypeAlias = Annotated[float, Range(0)]
Share: TypeAlias = Annotated[float, Range(0, 1)]

# Parameters that several methods share, with their descriptions.
LogitScale: TypeAlias = Annotated[
    Positive | None, "Factor that makes logits of cosines; None is the encoder's, 100 where none is known."
]
AnchorScale: TypeAlias = Annotated[
    Positive | None,
    "Norm of the text embeddings before they were normalised; None is the encoder's, 10 where none is known.",
]
BatchSeed: TypeAlias = Annotated[Seed, "Seed of the order of the batches."]
Epochs: TypeAlias = Annotated[Count, "Passes over the shots."]
BatchSize: TypeAlias = Annotated[Count, "Rows of a step."]
LearningRate: TypeAlias = Annotated[NotNegative, "Largest learning rate."]
WarmupRate: TypeAlias = Annotated[NotNegative, "Learning rate of the first epoch."]
Momentum: TypeAlias = Annotated[Share, "Momentum of SGD."]
WeightDecay: TypeAlias = Annotated[NotNegative, "Weight decay of the optimiser."]
AdamEps: TypeAlias = Annotated[Positive, "Added to Adam's denominator."]
BetaPoints: TypeAlias = Annotated[Count, "Number of betas in the search."]
AlphaPoints: TypeAlias = Annotated[Count, "Number of alphas in the search."]

E = TypeVar("E", bound="Estimator")
# Arguments of `fit` beside X and y, which meta-estimators of scikit-learn pass on by default.
ROUTED = ("text", "classes", "views", "pool", "validation", "few_shot_validation", "test", "queries", "constants")
# CLIP's, for rows that come without their encoder's.
ASSUMED = {"logit_scale": 100.0, "anchor_scale": 10.0}
# Scales up to this one are taken for logarithms.
SMALLEST_LOGIT_SCALE = 10
_KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text", NoneType: "None"}


class Estimator:
    """Parameters that can be read, set, shown and cloned; tags; metadata routing."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    def set_params(self: E, **params: Any) -> E:
        allowed = parameter_names(type(self))
        for name, value in params.items():
            if name not in allowed:
                raise InputError(
                    f"{type(self).__name__} has no parameter '{name}'; it has {', '.join(allowed) or 'none'}."
                )
            setattr(self, name, value)
        return self

    def with_params(self: E, **params: Any) -> E:
        """A new unfitted method with these parameters changed."""
        return type(self)(**{**self.get_params(), **params})

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

    def get_metadata_routing(self) -> Any:
        """scikit-learn's `MetadataRequest`: all that `fit` takes is requested unless `set_fit_request` says no."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        request = MetadataRequest(owner=self)
        for name in ROUTED:
            request.fit.add_request(param=name, alias=True)
        request.score.add_request(param="sample_weight", alias=None)
        return request

    def set_fit_request(self: E, **wanted: bool | str | None) -> E:
        """Set for each argument of `fit`: True, False, None (refuse it) or the name under which it arrives."""
        request = self.get_metadata_routing()
        for name, alias in wanted.items():
            if name not in ROUTED:
                raise InputError(f"fit takes no '{name}' that could be routed; it takes {', '.join(ROUTED)}.")
            request.fit.add_request(param=name, alias=alias)
        # scikit-learn's clone copies an attribute of this name.
        self._metadata_request = request
        return self

    def set_score_request(self: E, *, sample_weight: bool | str | None) -> E:
        """Set for `sample_weight` of `score`: True, False, None (refuse it) or the name under which it arrives."""
        request = self.get_metadata_routing()
        request.score.add_request(param="sample_weight", alias=sample_weight)
        self._metadata_request = request
        return self


def parameters_section(cls: type) -> str:
    """The "Parameters" section of a dataclass's docstring."""
    lines = ["Parameters", "----------"]
    for field in fields(cls):
        if field.init:
            default = "" if field.default is MISSING else f", default {field.default!r}"
            lines.append(f"{field.name} : {' or '.join(_describe(field.type))}{default}")
            lines += [f"    {words}" for words in _words(field.type)]
    return "\n".join(lines)


def summary(cls: type) -> str:
    """The first paragraph of the docstring, in one line."""
    return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())


def parameter_words(cls: type) -> dict[str, str]:
    """The description of each parameter that has one."""
    return {name: " ".join(_words(annotation)) for name, annotation in _declared(cls).items() if _words(annotation)}


def _words(annotation: Any) -> list[str]:
    parts = get_args(annotation) if get_origin(annotation) is Annotated else ()
    return [part for part in parts if isinstance(part, str)]


@cache
def parameter_names(cls: type) -> tuple[str, ...]:
    signature = inspect.signature(cls)
    return tuple(p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD)


def check_parameters(method: Any) -> None:
    """Refuse the first parameter whose value its annotation does not allow."""
    for name, annotation in _declared(type(method)).items():
        value = getattr(method, name)
        if not _allows(annotation, value):
            allowed = " or ".join(_describe(annotation))
            raise InputError(f"{type(method).__name__}: {name} must be {allowed}, not {value!r}.")


@cache
def encoder_parameters(cls: type) -> frozenset[str]:
    """Parameters of the class whose values an encoder gives: `logit_scale`, `anchor_scale`, both or none."""
    return ENCODER_CONSTANTS.intersection(parameter_names(cls))


def check_logit_scale(value: float, where: str) -> None:
    """Refuse a logarithm: models keep log(100) = 4.6052 as their parameter, and logits are 100 times the cosine."""
    if 0 < value <= SMALLEST_LOGIT_SCALE:
        meant = f"exp({value:.5g}) = {math.exp(value):.4g}"
        raise InputError(
            f"{where}: logit_scale {value:.5g} is too small to multiply cosines; is it the logarithm, and {meant} the "
            f"scale? Give {math.exp(value):.4g}; CLIP's is 100."
        )


def known_constants(method: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Constants for a fit of this method, each from its own parameter if that is set, else from those given: the
    encoder's, and the dataset's if the method declares them."""
    takes = method.info.constants | encoder_parameters(type(method))
    strange = given.keys() - takes - ENCODER_CONSTANTS - DATASET_CONSTANTS
    if strange:
        allowed = ", ".join(sorted({*takes, *ENCODER_CONSTANTS}))
        raise InputError(f"constants has no '{min(strange)}'; {type(method).__name__} takes {allowed}.")
    known = EncoderConstants()
    for name in sorted(takes | ENCODER_CONSTANTS):
        own = getattr(method, name, None) if name in takes else None
        if own is not None and inspect.signature(type(method)).parameters[name].default is not None:
            raise InputError(
                f"{type(method).__name__}: {name} is a constant that encoder or dataset know, so its default must be "
                f"None: write {name}: Positive | None = None and use task.{name} in _fit."
            )
        value = given.get(name) if own is None else own
        if value is not None:
            if not _allows(NotNegative if name == "alpha" else Positive, value):
                raise InputError(f"constants: {name} must be a number above 0, not {value!r}.")
            if name == "logit_scale" and (own is not None or not isinstance(given, EncoderConstants)):
                check_logit_scale(float(value), type(method).__name__)
            known[name] = float(value) if name in ENCODER_CONSTANTS else value
    return known


def used_constants(method: Any, known: Mapping[str, Any]) -> dict[str, Choice]:
    """The encoder's constants that are parameters of the method, and where each value is from."""
    used = {}
    for name in sorted(encoder_parameters(type(method))):
        if getattr(method, name, None) is not None:
            used[name] = Choice(known[name], "fixed")
        elif name in known:
            used[name] = Choice(known[name], "encoder")
        else:
            used[name] = Choice(ASSUMED[name], "assumed")
    return used


@cache
def _declared(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls.__init__, include_extras=True)
    return {name: hints[name] for name in parameter_names(cls) if name in hints}


def _allows(annotation: Any, value: Any) -> bool:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = [part for part in parts[1:] if isinstance(part, Range)]
        return _allows(parts[0], value) and all(bound.holds(value) for bound in bounds)
    if origin in (Union, UnionType):
        return any(_allows(part, value) for part in parts)
    if origin is Literal:
        return isinstance(value, str | NoneType) and value in parts
    if origin is list:
        sequence = isinstance(value, list | tuple | np.ndarray)
        return sequence and all(_allows(parts[0], item) for item in value)
    if annotation in (int, float):
        kind = Integral if annotation is int else Real
        return isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    if annotation is bool:
        return isinstance(value, bool | np.bool_)
    return not isinstance(annotation, type) or isinstance(value, annotation)


def _describe(annotation: Any) -> Iterable[str]:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = " and ".join(str(part) for part in parts[1:] if isinstance(part, Range))
        yield from (f"{kind} {bounds}".strip() for kind in _describe(parts[0]))
    elif origin in (Union, UnionType):
        for part in parts:
            yield from _describe(part)
    elif origin is Literal:
        yield from (repr(part) for part in parts)
    elif origin is list:
        yield f"a list of which each is {' or '.join(_describe(parts[0]))}"
    else:
        yield _KINDS.get(annotation, getattr(annotation, "__name__", str(annotation)))
