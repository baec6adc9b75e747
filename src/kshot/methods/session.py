"""A hash of what a head in memory would run: its class, what that names in its session, and its parameters.

A class of a notebook has no file. Functions count by their bytecode, with the functions, classes and values that they
name, objects by their class and state; what comes from a module counts by its name and, unless it is installed, by its
source files.
"""

import copyreg
import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from kshot.methods.sources import own_code_hash

PLAIN = (int, float, complex, str, bytes, type(None))
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


def _walk(value: Any, met: dict[int, tuple[int, Any]], home: str) -> Iterator[str | bytes]:
    """`met` numbers the values and keeps them: the place of a value that is gone would be that of the next."""
    if isinstance(value, PLAIN):
        yield repr(value)
        return
    if id(value) in met:
        yield f"value {met[id(value)][0]}"
        return
    met[id(value)] = len(met), value
    yield type(value).__qualname__
    for part in _parts(value, home):
        yield from [part] if isinstance(part, bytes) else _walk(part, met, home)


def _parts(value: Any, home: str) -> Iterator[Any]:
    """The parts of a value; nothing that depends on its address in memory."""
    if isinstance(value, ModuleType):
        yield from (value.__name__, own_code_hash(value.__name__))
    elif isinstance(value, type | FunctionType) and value.__module__ != home:
        yield from (f"{value.__module__}:{value.__qualname__}", own_code_hash(value.__module__))
    elif isinstance(value, type):
        yield from value.__bases__
        yield {name: part for name, part in vars(value).items() if name not in ADDED}
    elif isinstance(value, FunctionType):
        yield from (value.__code__, value.__defaults__, value.__kwdefaults__)
        yield from (cell.cell_contents for cell in value.__closure__ or ())
        names = sorted(_names(value.__code__))
        used = {name: value.__globals__[name] for name in names if name in value.__globals__}
        yield used
        # A session may have set values of its modules: `settings.RATIO = 0.5`.
        own = [one for one in used.values() if isinstance(one, ModuleType) and own_code_hash(one.__name__)]
        yield [(name, vars(module)[name]) for module in own for name in names if name in vars(module)]
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
    elif (detach := getattr(value, "detach", None)) and hasattr(value, "dtype"):
        yield detach().cpu().double().numpy()
    else:
        yield from (type(value), getattr(value, "__wrapped__", None))
        yield _state(value)


def _state(value: Any) -> Any:
    """What pickle rebuilds an object from; its attributes if it cannot be pickled, as with locks and open files."""
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        return reduce(value) if reduce else value.__reduce_ex__(2)
    except Exception:
        return getattr(value, "__dict__", None)


def _names(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names, inner))
