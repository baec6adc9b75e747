"""Heads as a caller gives them (names, `package.module:Class`, objects) as the methods of a study."""

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from inspect import Parameter, signature
from typing import Any, TypeAlias

import numpy as np

from kshot.bench.recipes import code_of
from kshot.bench.study import MethodSpec
from kshot.errors import InputError, KshotError
from kshot.methods import registry
from kshot.methods.base import Classifier, plain_value
from kshot.methods.code import code_hash

Head: TypeAlias = str | Classifier | type[Classifier]
Heads: TypeAlias = Head | Iterable[Head] | Mapping[str, Head]
# Characters of a parameter's value in a name.
LONGEST_VALUE = 24


def method_specs(heads: Heads) -> list[MethodSpec]:
    """One method for each head, each under a name of its own: the keys of a mapping, else the head's key with the
    parameters that differ from its defaults. A head that is given twice counts once."""
    if isinstance(heads, str | Classifier | type) or not isinstance(heads, Iterable):
        heads = [heads]
    if isinstance(heads, Mapping):
        given: list[tuple[Any, Any]] = list(heads.items())
    else:
        # "free" stands for all heads of that kind.
        kinds = [registry.heads(head) if isinstance(head, str) and head in registry.KINDS else [head] for head in heads]
        given = [(None, head) for kind in kinds for head in kind]
    specs: dict[str, MethodSpec] = {}
    for title, head in given:
        spec = _spec(head() if isinstance(head, type) and issubclass(head, Classifier) else head, title, specs)
        if title is not None or not any(_same(spec, other) for other in specs.values()):
            specs[spec.name] = spec
    return list(specs.values())


def _spec(head: Any, title: str | None, taken: Mapping[str, MethodSpec]) -> MethodSpec:
    if isinstance(head, str):
        return MethodSpec(title or head, head, title=title or "")
    if not isinstance(head, Classifier):
        raise InputError(
            f"{head!r:.80} is not a head. Give a name of `kshot ls methods`, 'package.module:Class', or an object such "
            "as kshot.CLAP(); docs/add-a-method.md shows a class of your own."
        )
    info, use = head.info, _importable(head)
    if use in registry.BUILTIN:
        changed = _changed(head, registry.create(use).get_params())
    else:
        changed = _changed(head, {name: one.default for name, one in signature(type(head)).parameters.items()})
    settings = ", ".join(f"{name}={_short(value)}" for name, value in changed.items())
    own_key = info.key if use == info.key or info.key not in registry.names() else type(head).__name__
    plain, shown = f"{own_key}({settings})" if settings else own_key, f" ({settings})" if settings else ""
    name = title or _free(plain, taken)
    # Two heads of one key, such as two versions of a class, are told apart by a number.
    shown = title or f"{info.title}{shown}{name.removeprefix(plain)}"
    try:
        params = {key: plain_value(value, key) for key, value in changed.items()}
        if use:
            # A class that cannot be made without arguments is known by its object alone.
            registry.create(use, **params)
            return MethodSpec(name, use, params, title="" if (name, shown) == (info.key, info.title) else shown)
    except KshotError:
        pass
    return MethodSpec(name, f"__main__:{name}", title=shown, head=head)


def _importable(head: Classifier) -> str:
    """The name under which any process can import the head's class; empty for a class of this session."""
    cls, key = type(head), head.info.key
    if key in registry.BUILTIN and registry.builtin_class(registry.path_of(key)) is cls:
        return key
    there = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None)
    try:
        found = cls.__module__ != "__main__" and find_spec(cls.__module__) is not None
    except (ImportError, ValueError):
        found = False
    # Not `is`: a run imports the modules of own methods again.
    same = found and isinstance(there, type) and code_hash(there) == code_hash(cls)
    return f"{cls.__module__}:{cls.__qualname__}" if same else ""


def _changed(head: Classifier, defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in head.get_params().items()
        if defaults.get(name, Parameter.empty) is Parameter.empty or not _equal(value, defaults[name])
    }


def _same(one: MethodSpec, other: MethodSpec) -> bool:
    """Whether both are the same method with the same parameters, under any name."""
    if one.head is not None and other.head is not None:
        return code_of(one) == code_of(other)
    return (one.use, one.params) == (other.use, other.params)


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(np.array_equal(one, other))
    except (TypeError, ValueError):
        return False


def _free(name: str, taken: Mapping[str, MethodSpec]) -> str:
    """The name, or with a number behind it where another head has it."""
    number = 1
    while (found := name if number == 1 else f"{name} {number}") in taken:
        number += 1
    return found


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
