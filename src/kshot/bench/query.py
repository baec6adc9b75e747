"""A study and a feature store: for every cell and method the key of its record, or the reason why there is none.

A key is a hash of what the numbers depend on: the draw, the recipe (class, parameters, version or code, views) and the
features that are looked at. Names of studies and methods, machines, and what other cells need are not in it.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, NamedTuple

from kshot.bench.recipes import described, recipe
from kshot.bench.strata import Sizes, check_tiers, check_views, stored_parts, strata_of
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.catalog import dataset_entry
from kshot.data.episode import RULES
from kshot.data.store import Store, view_part
from kshot.errors import StudyError
from kshot.types import FREE_EVIDENCE, HALVES, Evidence, MethodInfo

# Evidence that is taken from the pool beside the support; validation only where the dataset has no such split.
RESIDUE: frozenset[Evidence] = frozenset({"pool", "few_shot_validation", "validation"})
DIGITS = 32
Place = tuple[str, str]


class Asked(NamedTuple):
    """One method of one cell: the key of its record, or the reason why there is none."""

    spec: MethodSpec
    key: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Query:
    """What a study asks for, cell by cell; the largest strata come first.

    `dropped` are cells that the pool is too small for, `absent` the (dataset, backbone, tier) without features and why.
    """

    study: Study
    cells: Mapping[Cell, Mapping[str, Asked]]
    source: "Keys"
    strata: Mapping[Place, Sizes] = field(default_factory=dict)
    dropped: frozenset[Cell] = frozenset()
    absent: Mapping[tuple[str, str, str], str] = field(default_factory=dict)

    def asked(self) -> Iterator[tuple[Cell, Asked]]:
        return ((cell, asked) for cell, named in self.cells.items() for asked in named.values())

    def keys(self) -> set[str]:
        """The keys of all records."""
        return {asked.key for _, asked in self.asked() if asked.key}

    def hashes_of(self, cell: Cell) -> str:
        """The sha256 of every part of the cell's features, as one text."""
        place = f"{cell.dataset}/{cell.backbone}/"
        return " ".join(digest for name, digest in self.source.hashes.items() if name.startswith(place))

    def unstored(self) -> list[Place]:
        return [place for place, sizes in self.strata.items() if not sizes.stored]


def query(
    study: Study, store: Store, *, must_be_stored: bool = True, keep: Callable[[Cell], bool] | None = None
) -> Query:
    """Check all names and find every key. Simulated worlds that are absent are written first, where they must be
    stored.

    With `keep`, only cells for which it is true and whose features are stored; `absent` gives the reason for others.
    """
    _refuse_main_module(study)
    cells = {cell: specs for cell, specs in study.cells().items() if keep is None or keep(cell)}
    absent: dict[tuple[str, str, str], str] = {}
    if keep is None:
        strata = strata_of(study, store, must_be_stored=must_be_stored)
        check_tiers(study, store)
        if must_be_stored:
            check_views(study, store)
    else:
        strata, absent = stored_parts(study, store, cells)
        cells = {c: specs for c, specs in cells.items() if (c.dataset, c.backbone, c.tier) not in absent}
    keys = Keys(study, store.hashes(strata), study.methods().values())
    asked: dict[Cell, dict[str, Asked]] = {}
    dropped = set()
    for cell in sorted(cells, key=_largest_first(strata)):
        left = strata[cell.dataset, cell.backbone].left(cell.shots)
        if left < 0 or (study.drop_thin and left < study.least_left):
            dropped.add(cell)
        else:
            asked[cell] = {spec.name: keys.asked(cell, spec, left) for spec in cells[cell]}
    return Query(study, asked, keys, strata, frozenset(dropped), absent)


class Keys:
    """The keys of a study's records, from the hashes of its features alone."""

    def __init__(
        self,
        study: Study,
        hashes: Mapping[str, str],
        specs: Collection[MethodSpec],
        describe: Callable[[MethodSpec], MethodInfo] = described,
    ):
        self.study, self.hashes = study, hashes
        self.infos = {spec.name: describe(spec) for spec in specs}
        self.recipes = {spec.name: recipe(spec, self.infos[spec.name]) for spec in specs}
        self._recipes = {name: digest(words) for name, words in self.recipes.items()}
        with_text = {name.partition("/text-")[0] for name in hashes if "/text-" in name}
        self._without_text = {name.rpartition("/")[0] for name in hashes} - with_text
        self._drawn: dict[Cell, str] = {}
        self._features: dict[tuple, dict[str, str]] = {}
        self._looked_at: dict[tuple, str] = {}

    def asked(self, cell: Cell, spec: MethodSpec, left: int) -> Asked:
        """The key, or the reason why there is none; `left` pool pictures of a class lie beside its shots."""
        reason = self.undefined(cell, self.infos[spec.name], left)
        return Asked(spec, reason=reason) if reason else Asked(spec, self.key(cell, spec))

    def undefined(self, cell: Cell, info: MethodInfo, left: int) -> str:
        """Why a method has no record in a cell, known before anything is computed; empty where it has one."""
        if "text" in info.sees and f"{cell.dataset}/{cell.backbone}" in self._without_text:
            return f"{cell.backbone} has no text"
        least = max(1, self.study.least_left)
        own_split = f"{cell.dataset}/{cell.backbone}/val" in self.hashes
        if info.sees & (RESIDUE - {"validation"} if own_split else RESIDUE) and left < least:
            return f"a class keeps {left} pool pictures beside its shots, fewer than {least}"
        if cell.profile in HALVES and not info.sees <= FREE_EVIDENCE:
            return "base to new is defined for methods that look at text and shots alone"
        return ""

    def key(self, cell: Cell, spec: MethodSpec) -> str:
        if cell not in self._drawn:
            given = self.study.supports_of(cell.dataset).get((cell.shots, cell.seed))
            self._drawn[cell] = digest(RULES, astuple(cell), self.study.dtype, given)
        place = self._place(cell, spec)
        if place not in self._looked_at:
            base = self._base(cell)
            entry = dataset_entry(cell.dataset)
            tuned = entry.constants if entry and "test" in self.infos[spec.name].sees else None
            cap = None if base == "all" else self.study.pool_cap
            self._looked_at[place] = digest(self.features(cell, spec), cap, tuned)
        return digest(self._drawn[cell], self._recipes[spec.name], self._looked_at[place])

    def features(self, cell: Cell, spec: MethodSpec) -> dict[str, str]:
        """The hashes of exactly those parts of the stored features that the record depends on, by part."""
        place = self._place(cell, spec)
        if place not in self._features:
            base, info = self._base(cell), self.infos[spec.name]
            parts = [base, *(["test"] if base != "all" else []), f"text-{cell.tier}"]
            parts += ["val"] if "validation" in info.sees else []
            views = spec.views if info.views else None
            parts += [view_part(base, views.recipe, n) for n in range(views.count)] if views else []
            files = (f"{part}{end}" for part in parts for end in ("", ".json"))
            stored = ((file, self.hashes.get(f"{cell.dataset}/{cell.backbone}/{file}")) for file in files)
            self._features[place] = {file: value for file, value in stored if value}
        return self._features[place]

    def _place(self, cell: Cell, spec: MethodSpec) -> tuple:
        info = self.infos[spec.name]
        views = astuple(spec.views) if spec.views and info.views else None
        return cell.dataset, cell.backbone, cell.tier, views, info.sees & {"validation", "test"}

    def _base(self, cell: Cell) -> str:
        return "all" if f"{cell.dataset}/{cell.backbone}/all" in self.hashes else "pool"


def digest(*parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def thin_draws(study: Study, store: Store) -> Iterable[tuple[str, str, int, int]]:
    """(dataset, backbone, shots, seed) of every cell that the pools have pictures for."""
    strata = strata_of(study, store, must_be_stored=True)
    cells = study.cells()
    return [(c.dataset, c.backbone, c.shots, c.seed) for c in cells if strata[c.dataset, c.backbone].left(c.shots) >= 0]


def _largest_first(strata: Mapping[Place, Sizes]) -> Callable[[Cell], tuple]:
    """Cells of a stratum stay together, because its features are loaded once; no large one is left for the end."""

    def order(cell: Cell) -> tuple:
        return (
            -strata[cell.dataset, cell.backbone].operations(1),
            cell.dataset,
            cell.backbone,
            -cell.shots,
            astuple(cell),
        )

    return order


def _refuse_main_module(study: Study) -> None:
    """Raise if a method is named in __main__, which workers cannot import."""
    for spec in study.methods().values():
        module, _, name = spec.use.partition(":")
        if module == "__main__" and spec.head is None:
            raise StudyError(
                f"method '{spec.use}' lives in the script or session itself. Give the object: heads=[{name}()]. For a "
                f"study file, move {name} to a file of its own, such as my_method.py, and name it my_method:{name}."
            )
