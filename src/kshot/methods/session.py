"""A hash of what a head in memory would run: its class, what that names in its session, and its parameters.

A class of a notebook has no file. Functions count by their bytecode, with the functions, classes and values that they
name; what comes from a module counts by its name; other objects by what a copy would take along.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PLAIN = (int, float, complex, str, bytes, type(None))
CACHED = type(lru_cache(len))
# What Python adds to a class, or makes of the rest.
ADDED = {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__dataclass_fields__"}
ADDED |= {"__dataclass_params__", "__match_args__", "__firstlineno__", "__static_attributes__", "__annotate__"}


def session_code(head: Any) -> str:
    """16 hex digits that change when the head's class, what it uses of its session, or a parameter changes."""
    return class_code(type(head), head.get_params())


def class_code(cls: type, *more: Any) -> str:
    digest = hashlib.sha256()
    for part in _walk([cls, *more], {}, cls.__module__):
        digest.update(part if isinstance(part, bytes) else f"{part}\n".encode())
    return digest.hexdigest()[:16]


def _walk(value: Any, met: dict[int, Any], home: str) -> Iterator[str | bytes]:
    if isinstance(value, PLAIN):
        yield repr(value)
        return
    if id(value) in met:
        return
    # Held, because the number of an object that is gone goes to another one.
    met[id(value)] = value
    yield type(value).__qualname__
    for part in _parts(value, home):
        yield from [part] if isinstance(part, bytes) else _walk(part, met, home)


def _parts(value: Any, home: str) -> Iterator[Any]:
    """What a value is made of; nothing that depends on where it lies in memory."""
    if isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, type | FunctionType) and value.__module__ != home:
        yield f"{value.__module__}:{value.__qualname__}"
    elif isinstance(value, type):
        yield from value.__bases__
        yield {name: part for name, part in vars(value).items() if name not in ADDED}
    elif isinstance(value, FunctionType):
        yield from (value.__code__, value.__defaults__, value.__kwdefaults__)
        yield from (cell.cell_contents for cell in value.__closure__ or ())
        yield {name: value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__}
    elif isinstance(value, CodeType):
        yield from (value.co_code, value.co_names, value.co_consts)
    elif isinstance(value, staticmethod | classmethod):
        yield value.__func__
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield from (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, dict):
        yield from (part for pair in value.items() for part in pair)
    elif isinstance(value, set | frozenset):
        yield from sorted(value, key=repr)
    elif isinstance(value, list | tuple):
        yield from value
    elif is_dataclass(value):
        yield from (getattr(value, field.name) for field in fields(value))
    elif isinstance(value, CACHED):
        yield getattr(value, "__wrapped__", None)
    else:
        yield from _copied(value)


def _copied(value: Any) -> Iterator[Any]:
    """What a copy of the object would be made from: of a partial its function and arguments, of most others their
    attributes; nothing of a lock or a file."""
    try:
        # The copy of a tensor names a place in memory.
        found = (value.detach().cpu().double().numpy(),) if hasattr(value, "detach") else value.__reduce_ex__(4)
    except Exception:
        return
    if isinstance(found, str):
        yield found
        return
    yield from found[:3]
    yield from (list(items) for items in found[3:5] if items is not None)


def _names(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names, inner))
