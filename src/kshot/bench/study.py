"""A study: a named grid of cells and the methods to run on them, read from TOML."""

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from kshot.errors import StudyError, unknown
from kshot.features.manifest import safe_name

AXES = ("datasets", "backbones", "tiers", "shots", "seeds", "methods")
DTYPES = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a study's grid."""

    dataset: str
    backbone: str
    tier: str
    shots: int
    seed: int


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method under the name it has in the records, with the parameters that differ from its defaults."""

    name: str
    use: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grid:
    """All combinations of its axes."""

    datasets: tuple[str, ...]
    backbones: tuple[str, ...]
    tiers: tuple[str, ...]
    shots: tuple[int, ...]
    seeds: tuple[int, ...]
    methods: tuple[MethodSpec, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """Several grids under one name, precision and hash."""

    name: str
    grids: tuple[Grid, ...]
    dtype: str = "float32"

    @property
    def hash(self) -> str:
        """Names everything that a record depends on in the study file."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def cells(self) -> dict[Cell, tuple[MethodSpec, ...]]:
        """Every cell with its methods; grids that meet in a cell join their methods."""
        found: dict[Cell, dict[str, MethodSpec]] = {}
        for grid in self.grids:
            for axes in product(grid.datasets, grid.backbones, grid.tiers, grid.shots, grid.seeds):
                found.setdefault(Cell(*axes), {}).update({spec.name: spec for spec in grid.methods})
        return {cell: tuple(specs.values()) for cell, specs in found.items()}

    def methods(self) -> dict[str, MethodSpec]:
        return {spec.name: spec for grid in self.grids for spec in grid.methods}

    def extends(self, older: "Study") -> bool:
        """Whether every record of the older study belongs to this one as it is."""
        cells = self.cells()
        return (self.name, self.dtype) == (older.name, older.dtype) and all(
            spec in cells.get(cell, ()) for cell, specs in older.cells().items() for spec in specs
        )

    def in_precision(self, dtype: str) -> "Study":
        """The same cells computed in another dtype, as a study of its own."""
        return replace(self, name=f"{self.name}-{dtype}", dtype=dtype)

    def on_datasets(self, names: Sequence[str]) -> "Study":
        """Only these datasets."""
        known = {dataset for grid in self.grids for dataset in grid.datasets}
        for name in names:
            if name not in known:
                raise StudyError(unknown("dataset", name, known, "Choose from the study's own datasets."))
        kept = (replace(g, datasets=tuple(d for d in g.datasets if d in names)) for g in self.grids)
        return replace(self, grids=tuple(grid for grid in kept if grid.datasets))

    def with_methods(self, extra: Sequence[str]) -> "Study":
        """The study plus outsiders' methods on every grid."""
        specs = tuple(_method(name) for name in extra)
        return replace(self, grids=tuple(replace(g, methods=g.methods + specs) for g in self.grids))


def load_study(path: Path | str) -> Study:
    """Read a study file; every mistake in it is one clear sentence."""
    path = Path(path)
    if not path.is_file():
        near = sorted(str(p) for p in Path("studies").glob("*.toml"))
        raise StudyError(unknown("study file", str(path), near, "Give the path of a .toml file."))
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not valid TOML: {error}") from error
    return parse_study(content, str(path))


def parse_study(content: dict[str, Any], where: str) -> Study:
    allowed = {"name", "dtype", "grid", *AXES}
    for key in content:
        if key not in allowed:
            raise StudyError(f"{where}: " + unknown("key", key, allowed, "Remove it or correct the name."))
    dtype = content.get("dtype", "float32")
    if dtype not in DTYPES:
        raise StudyError(f"{where}: dtype is '{dtype}'; allowed are {' and '.join(DTYPES)}.")
    if not isinstance(content.get("name"), str):
        raise StudyError(f'{where}: a study needs a name, for example name = "mine".')
    shared = {axis: content[axis] for axis in AXES if axis in content}
    tables = content.get("grid", [{}])
    grids = tuple(_grid({**shared, **table}, where) for table in tables)
    return Study(safe_name("study", content["name"]), grids, dtype)


def study_from_json(text: str) -> Study:
    """The inverse of `Study.to_json`."""
    content = json.loads(text)
    grids = tuple(
        Grid(
            **{k: tuple(v) for k, v in g.items() if k != "methods"},
            methods=tuple(MethodSpec(**m) for m in g["methods"]),
        )
        for g in content["grids"]
    )
    return Study(content["name"], grids, content["dtype"])


def _grid(table: dict[str, Any], where: str) -> Grid:
    for axis in AXES:
        if not isinstance(table.get(axis), list) or not table[axis]:
            raise StudyError(f"{where}: '{axis}' must be a list with at least one entry.")
    for key in table:
        if key not in AXES:
            raise StudyError(f"{where}: " + unknown("key", key, AXES, "Remove it or correct the name."))
    for axis in ("shots", "seeds"):
        least = 1 if axis == "shots" else 0
        if not all(isinstance(v, int) and not isinstance(v, bool) and v >= least for v in table[axis]):
            raise StudyError(f"{where}: '{axis}' must be whole numbers from {least} up, not {table[axis]}.")
    for kind in ("datasets", "backbones", "tiers"):
        for name in table[kind]:
            safe_name(kind[:-1], str(name))
    axes = {axis: tuple(dict.fromkeys(table[axis])) for axis in AXES if axis != "methods"}
    return Grid(**axes, methods=tuple(_method(entry) for entry in table["methods"]))


def _method(entry: str | dict[str, Any]) -> MethodSpec:
    """`"clap"`, or `{use = "clap", as = "clap_seed1", seed = 1}` to change parameters under a new name."""
    if isinstance(entry, str):
        return MethodSpec(name=entry, use=entry)
    params = {key: value for key, value in entry.items() if key not in ("use", "as")}
    if not isinstance(entry.get("use"), str) or (params and not isinstance(entry.get("as"), str)):
        raise StudyError(f'a method with parameters needs use = "…" and a name as = "…"; given was {entry}.')
    return MethodSpec(name=entry.get("as", entry["use"]), use=entry["use"], params=params)
