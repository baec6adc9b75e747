"""The code that a method is made of, as a hash over its source files."""

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kshot.methods import registry

SUFFIXES = (".py", ".so", ".pyd")
INSTALLED = ("site-packages", "dist-packages")


def code_of(use: str, params: Mapping[str, Any] | None = None) -> str:
    """A hash over the package of a method, and of methods that its parameters name; of a module or package outside
    site-packages also over what it imports from the folder beside it.

    Empty for methods of kshot, whose version stands in every record, and where no file is found. Nothing is imported.
    """
    named = [value for value in (params or {}).values() if isinstance(value, str)]
    files: dict[str, str] = {}
    for name in (use, *named):
        path = registry.path_of(name)
        top = path.partition(":")[0].partition(".")[0]
        if ":" in path and top.isidentifier() and top != "kshot":
            files |= _digests(top)
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16] if files else ""


def _digests(top: str) -> dict[str, str]:
    found: dict[str, str] = {}
    spec = _spec(top)
    for place in _places(spec) if spec else ():
        root, waiting, met = place.parent, [place], {place}
        while waiting:
            for path in _sources(waiting.pop()):
                about = path.stat()
                digest, imported = _read(path, about.st_mtime_ns, about.st_size)
                found[path.relative_to(root).as_posix()] = digest
                beside = {root / name for name in imported} | {root / f"{name}.py" for name in imported}
                fresh = beside - met if not set(INSTALLED) & set(root.parts) else set()
                met |= fresh
                waiting += sorted(fresh)
    return found


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
