"""The source files behind a module, and a hash of them."""

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

SUFFIXES = (".py", ".so", ".pyd")
INSTALLED = {"site-packages", "dist-packages"}


def code_hash(digests: Mapping[str, str]) -> str:
    """A hash of source files, given the sha256 of each by its name; empty if there are none."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16] if digests else ""


def is_installed(folder: Path) -> bool:
    """Whether a folder belongs to installed packages, whose versions rarely change under a study."""
    return bool(INSTALLED & set(folder.parts))


def own_code_hash(module: str | None) -> str:
    """The `code_hash` of a module that its user edits; empty for modules of Python, of kshot and installed ones."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top in ("", "kshot", "__main__"):
        return ""
    spec = _spec(top)
    # Reading the sources of torch takes half a minute.
    if spec is None or all(map(is_installed, _places(spec))):
        return ""
    return code_hash({name: digest_of(path) for name, path in files_of(top).items() if not is_installed(path)})


def digest_of(path: Path) -> str:
    return _read_file(path)[0]


def files_of(top: str) -> dict[str, Path]:
    """The source files of a top-level module or package, by their names below its folder; outside site-packages also
    what they import from the folder beside it."""
    found: dict[str, Path] = {}
    spec = _spec(top)
    for place in _places(spec) if spec else ():
        root, waiting, met = place.parent, [place], {place}
        while waiting:
            for path in _sources(waiting.pop()):
                found[path.relative_to(root).as_posix()] = path
                imported = _read_file(path)[1]
                beside = {root / name for name in imported} | {root / f"{name}.py" for name in imported}
                fresh = beside - met if not is_installed(root) else set()
                met |= fresh
                waiting += sorted(fresh)
    return found


def _read_file(path: Path) -> tuple[str, frozenset[str]]:
    about = path.stat()
    return _read(path, about.st_mtime_ns, about.st_size)


def _spec(top: str) -> ModuleSpec | None:
    """The module as an import would find it, whatever was imported before; the current folder is searched last."""
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
