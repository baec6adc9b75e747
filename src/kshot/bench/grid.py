"""A grid of a study: its cells, its methods, and how a table of TOML becomes one."""

from dataclasses import dataclass, field
from typing import Any

from kshot.errors import StudyError, unknown
from kshot.features.manifest import safe_name

AXES = ("datasets", "backbones", "tiers", "shots", "seeds", "methods")
# The records keep shots and seeds in 32 bits.
LARGEST = 2**31 - 1


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

    def __str__(self) -> str:
        return f"{self.use} with {self.params}" if self.params else self.use


@dataclass(frozen=True, slots=True)
class Grid:
    """All combinations of its axes."""

    datasets: tuple[str, ...]
    backbones: tuple[str, ...]
    tiers: tuple[str, ...]
    shots: tuple[int, ...]
    seeds: tuple[int, ...]
    methods: tuple[MethodSpec, ...]


def parse_grid(table: dict[str, Any], where: str) -> Grid:
    for axis in AXES:
        if not isinstance(table.get(axis), list) or not table[axis]:
            raise StudyError(f"{where}: '{axis}' must be a list with at least one entry.")
    for key in table:
        if key not in AXES:
            raise StudyError(f"{where}: " + unknown("key", key, AXES, "Remove it or correct the name."))
    for axis in ("shots", "seeds"):
        least = 1 if axis == "shots" else 0
        if not all(type(value) is int and least <= value <= LARGEST for value in table[axis]):
            raise StudyError(
                f"{where}: '{axis}' must be whole numbers from {least} up to {LARGEST}, not {table[axis]}."
            )
    for kind in ("datasets", "backbones", "tiers"):
        for name in table[kind]:
            if not isinstance(name, str):
                raise StudyError(f"{where}: '{kind}' must be names in quotes, not {name}.")
            safe_name(kind[:-1], name)
    axes = {axis: tuple(dict.fromkeys(table[axis])) for axis in AXES if axis != "methods"}
    return Grid(**axes, methods=tuple(_method(entry, where) for entry in table["methods"]))


def _method(entry: Any, where: str) -> MethodSpec:
    """`"clap"`, or `{use = "clap", as = "clap_seed1", seed = 1}` to change parameters under a new name."""
    if isinstance(entry, str):
        return MethodSpec(name=entry, use=entry)
    if not isinstance(entry, dict):
        raise StudyError(f"{where}: 'methods' must be names in quotes or {{use = …, as = …}}, not {entry}.")
    params = {key: value for key, value in entry.items() if key not in ("use", "as")}
    use, name = entry.get("use"), entry.get("as", None if params else entry.get("use"))
    if not isinstance(use, str) or not isinstance(name, str):
        raise StudyError(
            f'{where}: a method with parameters needs use = "…" and a name as = "…", both in quotes; given was {entry}.'
        )
    return MethodSpec(name, use, params)
