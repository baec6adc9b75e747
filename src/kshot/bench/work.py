"""From a study to the work that remains, with every name checked before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kshot.bench.records.folder import Records
from kshot.bench.records.query import query
from kshot.bench.records.schema import CELL
from kshot.bench.sizes import Sizes, check_tiers, check_views, strata_of, thin_cells
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.features.store import Store
from kshot.methods import registry
from kshot.profiles import plain_name
from kshot.types import Views

# A batch is no larger a part of its study than this, so that the last ones keep many workers busy.
PARTS_OF_A_STUDY = 256


@dataclass(frozen=True)
class CellBatch:
    """Cells of one stratum with the same methods: the unit that engines hand out.

    `hashes` are the sha256 of the features that the records folder was claimed for.
    """

    cells: tuple[Cell, ...]
    specs: tuple[MethodSpec, ...]
    hashes: frozenset[str]

    @property
    def views(self) -> frozenset[Views]:
        """The augmented views that some of its methods are given."""
        return frozenset(spec.views for spec in self.specs if spec.views is not None)


@dataclass(frozen=True)
class Work:
    """A study against a records folder."""

    study: Study
    cells: dict[Cell, tuple[MethodSpec, ...]]
    strata: dict[tuple[str, str], Sizes]
    dropped: frozenset[Cell]
    missing: dict[Cell, tuple[MethodSpec, ...]]
    features: dict[str, str]

    @property
    def done(self) -> int:
        return len(self.cells) - len(self.dropped) - len(self.missing)

    @property
    def unstored(self) -> list[tuple[str, str]]:
        return [stratum for stratum, sizes in self.strata.items() if not sizes.stored]

    def batches(self, shard: int = 0, shards: int = 1) -> list[CellBatch]:
        """Missing cells, dearest first, so that long work does not end the run.

        Cells of one stratum with the same methods go together, its features being loaded once, as long as they are a
        small part of the whole. Shards divide the whole study and not what is missing, so that a shard keeps its share
        when it is resumed.
        """
        costs = {cell: self._cost(cell) for cell in self.cells if cell not in self.dropped}
        most = sum(costs.values()) / PARTS_OF_A_STUDY
        groups: dict[tuple, list[Cell]] = {}
        filled: dict[tuple, tuple[int, float]] = {}
        for cell in sorted(costs, key=lambda cell: -costs[cell]):
            stratum = cell.dataset, cell.backbone, tuple(spec.name for spec in self.cells[cell])
            number, cost = filled.get(stratum, (0, 0.0))
            if cost + costs[cell] > most:
                number, cost = number + 1, 0.0
            filled[stratum] = number, cost + costs[cell]
            groups.setdefault((*stratum, number), []).append(cell)
        ordered = sorted(groups.values(), key=lambda cells: -sum(costs[cell] for cell in cells))
        batches: dict[tuple, list[Cell]] = {}
        for number, cells in enumerate(ordered[shard::shards]):
            for cell in cells:
                if cell in self.missing:
                    specs = self.missing[cell]
                    key = (number, *(spec.name for spec in specs))
                    batches.setdefault(key, []).append(cell)
        return [
            CellBatch(tuple(cells), self.missing[cells[0]], self.hashes(cells[0]))
            for cells in batches.values()
        ]

    def hashes(self, cell: Cell) -> frozenset[str]:
        """The sha256 of every part of the cell's features."""
        stratum = f"{plain_name(cell.dataset)}/{cell.backbone}/"
        return frozenset(digest for name, digest in self.features.items() if name.startswith(stratum))

    def _cost(self, cell: Cell) -> int:
        trained = sum(spec.name in self._trained for spec in self.cells[cell])
        return self.strata[cell.dataset, cell.backbone].cost(cell.shots, trained)

    @cached_property
    def _trained(self) -> frozenset[str]:
        """Methods that are trained; the others cost little beside them."""
        specs = self.study.methods().values()
        made = {spec.name: registry.create(spec.use, **spec.params) for spec in specs}
        return frozenset(name for name, method in made.items() if not method.info.closed_form)


def find_work(study: Study, store: Store, records: Records, *, must_be_stored: bool = True) -> Work:
    """Check all names, write simulated worlds that are asked for and absent, find what is missing."""
    for spec in study.methods().values():
        registry.create(spec.use, **spec.params)
    strata = strata_of(study, store, must_be_stored=must_be_stored)
    check_tiers(study, store)
    if must_be_stored:
        check_views(study, store)
    cells = study.cells()
    dropped = thin_cells(study, strata)
    wanted = {cell: specs for cell, specs in cells.items() if cell not in dropped}
    return Work(study, cells, strata, dropped, missing_cells(records, study, wanted), store.hashes(strata))


def missing_cells(
    records: Records, study: Study, cells: Mapping[Cell, Sequence[MethodSpec]]
) -> dict[Cell, tuple[MethodSpec, ...]]:
    """Which of the study's cells have no record of some methods, and of which.

    A cell's file holds all methods of the study that wrote it, so reading is only needed where this study
    extends the one that did.
    """
    extended = records.grows_into(study)
    files = set() if extended else {str(path) for path in records.loose()}
    recorded: dict[Cell, set[str]] = {}
    if records.joined() or (extended and records.loose()):
        view = "records" if extended else "joined"
        rows = query(records.folder, f"select {', '.join(CELL)}, list(method) from {view} group by all")
        recorded = {Cell(*row[:-1]): set(row[-1]) for row in rows}
    remaining = {
        cell: tuple(spec for spec in specs if spec.name not in recorded.get(cell, ()))
        for cell, specs in cells.items()
        if str(records.path(cell)) not in files
    }
    return {cell: specs for cell, specs in remaining.items() if specs}


def finished_cells(records: Records, study: Study | None = None) -> set[Cell]:
    """The cells that have every record of the folder's study, or of one that extends it."""
    study = study or records.study()
    cells = study.cells()
    return cells.keys() - missing_cells(records, study, cells).keys()


def check_stored(records: Records, store: Store) -> None:
    """Refuse a store that holds other features than the records were computed on."""
    records.check_features(store.hashes((cell.dataset, cell.backbone) for cell in records.study().cells()))
