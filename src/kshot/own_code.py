"""Code that users bring, as `module:NAME` or as classes of a session: loaded by name, and hashed to tell its changes.

A class of a notebook has no file. Functions count by their bytecode, with the functions, classes and values that they
name; what comes from a module counts by its name.
"""

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from kshot.errors import KshotError, one_line

SUFFIXES = (".py", ".so", ".pyd")
INSTALLED = ("site-packages", "dist-packages")
PLAIN = (int, float, complex, str, bytes, type(None))
# What Python adds to a class, or makes of the rest.
ADDED = {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__dataclass_fields__"}
ADDED |= {"__dataclass_params__", "__match_args__", "__firstlineno__", "__static_attributes__", "__annotate__"}


def load_named(kind: str, path: str) -> Any:
    """The object of that name, from an installed package or from a module of the current folder."""
    module_name, _, name = path.partition(":")
    here = os.getcwd()
    if not module_name.startswith("kshot.") and here not in sys.path:
        # As `python -m` would, but last: a file of that folder must not take the place of a library.
        sys.path.append(here)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise KshotError(
            f"cannot import '{module_name}' of {kind} '{path}': {error}. "
            "Install the package or run from the folder that holds the module."
        ) from error
    except Exception as error:
        raise KshotError(
            f"cannot import '{module_name}' of {kind} '{path}': {one_line(error)}. "
            f"Repair it; `python -c 'import {module_name}'` shows where it stops."
        ) from error
    found = getattr(module, name, None)
    if found is None:
        raise KshotError(f"module '{module_name}' has no {'class' if kind == 'method' else kind} '{name}'.")
    return found


def file_digests(files: Mapping[str, Path]) -> dict[str, str]:
    """The sha256 of each file."""
    return {name: _read_file(path)[0] for name, path in files.items()}


def code_hash(digests: Mapping[str, str]) -> str:
    """16 hex digits over source files, given the sha256 of each by its name; empty where there are none."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16] if digests else ""


def files_of(top: str) -> dict[str, Path]:
    """The source files of a package or module and, outside site-packages, of what it imports from the folder beside it;
    by their names below that folder."""
    found: dict[str, Path] = {}
    spec = _spec(top)
    for place in _places(spec) if spec else ():
        root, waiting, met = place.parent, [place], {place}
        while waiting:
            for path in _sources(waiting.pop()):
                found[path.relative_to(root).as_posix()] = path
                imported = _read_file(path)[1]
                beside = {root / name for name in imported} | {root / f"{name}.py" for name in imported}
                fresh = beside - met if not set(INSTALLED) & set(root.parts) else set()
                met |= fresh
                waiting += sorted(fresh)
    return found


def _read_file(path: Path) -> tuple[str, frozenset[str]]:
    about = path.stat()
    return _read(path, about.st_mtime_ns, about.st_size)


def _spec(top: str) -> ModuleSpec | None:
    """As an import would find it, whatever was imported before; the current folder comes last."""
    try:
        return PathFinder.find_spec(top, [*sys.path, os.getcwd()]) or find_spec(top)
    except (ImportError, ValueError):
        return None


def _places(spec: ModuleSpec) -> list[Path]:
    """The folders of a package, or the file of a module."""
    return [Path(place) for place in spec.submodule_search_locations or ([spec.origin] if spec.origin else [])]


def _sources(place: Path) -> Iterator[Path]:
    """The file itself, or the source files below the folder."""
    paths = sorted(place.rglob("*")) if place.is_dir() else [place]
    return (path for path in paths if path.suffix in SUFFIXES and path.is_file())


@lru_cache(maxsize=10_000)
def _read(path: Path, changed: int, size: int) -> tuple[str, frozenset[str]]:
    """The sha256 of a file, and the top names of what it imports."""
    content = path.read_bytes()
    try:
        tree = ast.parse(content) if path.suffix == ".py" else ast.Module([], [])
    except (SyntaxError, ValueError):
        tree = ast.Module([], [])
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return hashlib.sha256(content).hexdigest(), frozenset(names - {"kshot"})


def session_code(head: Any) -> str:
    """16 hex digits that change when the head's class, what it uses of its session, or a parameter changes."""
    return class_code(type(head), head.get_params())


def class_code(cls: type, *more: Any) -> str:
    digest = hashlib.sha256()
    for part in _walk([cls, *more], set(), cls.__module__):
        digest.update(part if isinstance(part, bytes) else f"{part}\n".encode())
    return digest.hexdigest()[:16]


def _walk(value: Any, met: set[int], home: str) -> Iterator[str | bytes]:
    if isinstance(value, PLAIN):
        yield repr(value)
        return
    if id(value) in met:
        return
    met.add(id(value))
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


def _names(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_names, inner))
