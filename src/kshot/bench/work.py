"""Find the cells of a study that are missing; all names and sizes are checked before anything runs.

Sizes come from the stored features, or from the catalog where nothing is stored yet.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kshot.bench.record import KEY, cells_of
from kshot.bench.records import Records, cell_place, load_table
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data import catalog, simulated
from kshot.data.episode import POOL_SHARE, drawn_rows
from kshot.data.shifts import make_shift
from kshot.data.store import IMAGE_PARTS, Store, view_part
from kshot.data.stratum import pool_rows
from kshot.errors import KshotError, StudyError, unknown
from kshot.files import place_of
from kshot.methods import registry
from kshot.types import Evidence, MethodInfo, Views

# A batch is at most this part of its study, so that the last batches keep many workers busy.
PARTS_OF_A_STUDY = 256
# Evidence that is taken from the pool beside the support; validation only where the dataset has no such split.
RESIDUE: frozenset[Evidence] = frozenset({"pool", "few_shot_validation", "validation"})


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a stratum; `smallest_pool`, the pool pictures of the smallest class, is None where it is not known."""

    stored: bool
    classes: int
    dim: int
    n_test: int
    smallest_pool: int | None
    n_pool: int

    def drops(self, shots: int, least: int) -> bool:
        """Whether fewer than `least` pool pictures of some class would be left."""
        return self.smallest_pool is not None and self.smallest_pool - shots < least

    def uses_whole_pool(self, shots: int) -> bool:
        """Whether every class has exactly so many pool pictures."""
        return self.smallest_pool == shots and self.n_pool == shots * self.classes

    def cost(self, shots: int, trained: int) -> int:
        """A number proportional to the seconds of a cell: a trained head passes over its shots hundreds of times."""
        return self.classes * self.dim * (300 * shots * self.classes * trained + 50 * self.n_test)


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


def count_cells(batches: Iterable[CellBatch]) -> int:
    return sum(len(batch.cells) for batch in batches)


@dataclass(frozen=True)
class Work:
    """What a records folder lacks of a study.

    `trained` methods take nearly all of the time. In `whole_pool` cells the shots are the whole pool; they are kept
    because no method of the study looks at other pictures. `absent` gives the reason why the cells of a (dataset,
    backbone, tier) are not among `cells`.
    """

    study: Study
    cells: dict[Cell, tuple[MethodSpec, ...]]
    strata: dict[tuple[str, str], Sizes]
    dropped: frozenset[Cell]
    missing: dict[Cell, tuple[MethodSpec, ...]]
    features: dict[str, str]
    trained: frozenset[str]
    whole_pool: frozenset[Cell] = frozenset()
    absent: dict[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def why_dropped(self) -> str:
        least = self.study.min_residue
        if least is not None:
            needed = max(least, 1)
            return f"a class has fewer pool pictures than shots; methods that look at further ones need {needed}"
        return f"a class would keep fewer than {self.study.least_residue} pool pictures beside its shots"

    @property
    def done(self) -> int:
        return len(self.cells) - len(self.dropped) - len(self.missing)

    @property
    def unstored(self) -> list[tuple[str, str]]:
        return [stratum for stratum, sizes in self.strata.items() if not sizes.stored]

    def batches(self, shard: int = 0, shards: int = 1) -> list[CellBatch]:
        """The missing cells in batches, the most expensive first, so that no long batch is left for the end.

        Cells of one stratum with the same methods share a batch, because its features are loaded once; a batch is at
        most 1/256 of the study. Shards divide the whole study and not the missing cells, so that a resumed shard keeps
        its share.
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
        return [CellBatch(tuple(cells), self.missing[cells[0]], self.hashes(cells[0])) for cells in batches.values()]

    def hashes(self, cell: Cell) -> frozenset[str]:
        """The sha256 of every part of the cell's features."""
        stratum = f"{cell.dataset}/{cell.backbone}/"
        return frozenset(digest for name, digest in self.features.items() if name.startswith(stratum))

    def _cost(self, cell: Cell) -> int:
        trained = sum(spec.name in self.trained for spec in self.cells[cell])
        return self.strata[cell.dataset, cell.backbone].cost(cell.shots, trained)


def find_work(
    study: Study,
    store: Store,
    records: Records,
    *,
    must_be_stored: bool = True,
    keep: Callable[[Cell], bool] | None = None,
) -> Work:
    """Check all names, write simulated worlds that are asked for and absent, find what is missing.

    With `keep`, only cells for which it is true and whose features are stored; `absent` gives the reason for others.
    """
    _refuse_main_module(study)
    info = {name: registry.info(spec.use, spec.params) for name, spec in study.methods().items()}
    trained = frozenset(name for name, about in info.items() if not about.closed_form)
    cells = {cell: specs for cell, specs in study.cells().items() if keep is None or keep(cell)}
    absent: dict[tuple[str, str, str], str] = {}
    if keep is None:
        strata = strata_of(study, store, must_be_stored=must_be_stored)
        check_tiers(study, store)
        if must_be_stored:
            check_views(study, store)
    else:
        strata, absent = _stored_parts(study, store, cells)
        cells = {c: specs for c, specs in cells.items() if (c.dataset, c.backbone, c.tier) not in absent}
    whole_pool: frozenset[Cell] = frozenset()
    if not any(map(needs_residue, info.values())):
        whole_pool = frozenset(c for c in cells if strata[c.dataset, c.backbone].uses_whole_pool(c.shots))
    dropped = thin_cells(study, strata, cells) - whole_pool
    wanted = {cell: specs for cell, specs in cells.items() if cell not in dropped}
    missing = missing_cells(records, study, wanted)
    return Work(study, cells, strata, dropped, missing, store.hashes(strata), trained, whole_pool, absent)


def _stored_parts(
    study: Study, store: Store, cells: Iterable[Cell]
) -> tuple[dict[tuple[str, str], Sizes], dict[tuple[str, str, str], str]]:
    """Sizes of the strata that are stored, and why the cells of a (dataset, backbone, tier) cannot be computed."""
    strata: dict[tuple[str, str], Sizes] = {}
    absent: dict[tuple[str, str, str], str] = {}
    tiers: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        tiers.setdefault((cell.dataset, cell.backbone), set()).add(cell.tier)
    for (dataset, backbone), wanted in tiers.items():
        stratum = study.only(datasets=(dataset,), backbones=(backbone,))
        try:
            strata |= strata_of(stratum, store, must_be_stored=True)
        except KshotError as error:
            absent |= {(dataset, backbone, tier): str(error) for tier in wanted}
            continue
        for tier in wanted:
            try:
                check_tiers(stratum.only(tiers=(tier,)), store)
                check_views(stratum.only(tiers=(tier,)), store)
            except KshotError as error:
                absent[dataset, backbone, tier] = str(error)
    return strata, absent


def missing_cells(
    records: Records, study: Study, cells: Mapping[Cell, Sequence[MethodSpec]]
) -> dict[Cell, tuple[MethodSpec, ...]]:
    """The cells that lack records, each with the methods that it lacks.

    A cell's file holds all methods of the study that wrote it, so reading is only needed where this study
    extends the one that did, or where the code of a method may have changed.
    """
    codes = present_codes(study)
    loose, columns = records.loose(), [*KEY, "code"]
    read_all = bool(loose) and (records.grows_into(study) or bool(codes))
    table = load_table(records.folder, columns, joined_only=not read_all)
    whole = set() if read_all else {place_of(records.folder, path) for path in loose}
    recorded: dict[Cell, set[str]] = {}
    rows = zip(cells_of(table), table["method"].to_pylist(), table["code"].to_pylist(), strict=True)
    for cell, method, code in rows:
        if codes.get(method, code) == code:
            recorded.setdefault(cell, set()).add(method)
    remaining = {
        cell: tuple(spec for spec in specs if spec.name not in recorded.get(cell, ()))
        for cell, specs in cells.items()
        if cell_place(cell) not in whole
    }
    return {cell: specs for cell, specs in remaining.items() if specs}


def present_codes(study: Study) -> dict[str, str]:
    """A hash of the code of each method that is not part of kshot and whose files are found, by its name."""
    codes = {name: registry.code_of(spec.use, spec.params) for name, spec in study.methods().items()}
    return {name: code for name, code in codes.items() if code}


def finished_cells(records: Records, study: Study | None = None) -> set[Cell]:
    """The cells that have every record of the folder's study, or of one that extends it."""
    study = study or records.study()
    cells = study.cells()
    return cells.keys() - missing_cells(records, study, cells).keys()


def check_stored(records: Records, store: Store) -> None:
    """Refuse a store that holds other features than the records were computed on."""
    records.check_features(store.hashes((cell.dataset, cell.backbone) for cell in records.study().cells()))


def strata_of(study: Study, store: Store, *, must_be_stored: bool) -> dict[tuple[str, str], Sizes]:
    """Every (dataset, backbone) of the study; simulated worlds that are absent or torn are written first where they
    must be stored, shifts where both their datasets are."""
    strata = {}
    wanted = dict.fromkeys((cell.dataset, cell.backbone) for cell in study.cells())
    for dataset, backbone in wanted:
        world = simulated.WORLDS.get(dataset) if backbone == simulated.BACKBONE else None
        if world and not simulated.is_written(dataset, store):
            if not must_be_stored:
                n_test, n_pool = world.classes * world.test_per_class, world.classes * world.pool_per_class
                strata[dataset, backbone] = Sizes(False, world.classes, world.dim, n_test, world.pool_per_class, n_pool)
                continue
            simulated.write(world, store)
        if dataset in catalog.shifts():
            make_shift(dataset, backbone, store)
        if _stored(store, dataset, backbone):
            strata[dataset, backbone] = _from_store(store, dataset, backbone, study.pool_cap)
        elif not must_be_stored and catalog.dataset_entry(dataset) and backbone in catalog.backbones():
            strata[dataset, backbone] = from_catalog(dataset, backbone, study.pool_cap)
        else:
            raise StudyError(_not_stored(store, dataset, backbone, wanted))
    return strata


def check_tiers(study: Study, store: Store) -> None:
    """Raise unless every tier is stored; backbones without any text are allowed, their text methods are undefined."""
    for dataset, backbone, tier in {(c.dataset, c.backbone, c.tier): None for c in study.cells()}:
        known = store.tiers(dataset, backbone)
        if not known and backbone == simulated.BACKBONE:
            known = [simulated.TIER]
        if known and tier not in known:
            where = f"There is no text of that tier for {dataset} with {backbone} in {store.root}."
            raise StudyError(unknown("tier", tier, known, where))


def check_views(study: Study, store: Store) -> None:
    """Raise unless the augmented views are stored for every stratum whose methods use them."""
    wanted = {(c.dataset, c.backbone, s.views): None for c, specs in study.cells().items() for s in specs if s.views}
    for dataset, backbone, views in wanted:
        part = store.part_of(dataset, backbone, "pool")
        names = [view_part(part, views.recipe, number) for number in range(views.count)]
        lacks = [name for name in names if not store.has(dataset, backbone, name)]
        if lacks:
            raise StudyError(
                f"the study asks for {views} of {dataset} with {backbone}; {store.root} lacks {len(lacks)} of them, "
                f"first {lacks[0]}. Encode the pictures again with --views {views.count} --view-recipe {views.recipe}."
            )
        # All views are of the same pictures; `kshot paper reproduce` makes them of the drawn ones only.
        pool, viewed = pool_rows(store, dataset, backbone, study.pool_cap), set(store.ids(dataset, backbone, names[0]))
        ids, y, n_classes = pool.drawable()
        if not viewed.issuperset(ids):
            rows = drawn_rows(dataset, ids, y, n_classes, study.draws(dataset)[views])
            if not viewed.issuperset(ids[row] for row in rows):
                raise StudyError(
                    f"the study draws pictures of {dataset} whose {views} by {backbone} are not stored. Delete "
                    f"{names[0]} and the like and encode them again."
                )


def thin_cells(
    study: Study, strata: dict[tuple[str, str], Sizes], cells: Iterable[Cell] | None = None
) -> frozenset[Cell]:
    """The cells, all of the study unless given, whose smallest class keeps too few pool pictures."""
    least, wanted = study.least_residue, study.cells() if cells is None else cells
    return frozenset(cell for cell in wanted if strata[cell.dataset, cell.backbone].drops(cell.shots, least))


def needs_residue(method: MethodInfo) -> bool:
    """Whether the method looks at pool pictures beside the shots."""
    return bool(method.sees & RESIDUE)


def _refuse_main_module(study: Study) -> None:
    """Raise if a method lives in __main__, which workers and readers of the records cannot import."""
    for use in (spec.use for spec in study.methods().values()):
        module, _, name = use.partition(":")
        if module == "__main__" and not registry.is_held(use):
            raise StudyError(
                f"method '{use}' lives in the script or session itself, which workers cannot import. Give the object: "
                f"method=[{name}()]. For other machines, move {name} to a file of its own, such as my_method.py, and "
                f"name it my_method:{name}."
            )


def _stored(store: Store, dataset: str, backbone: str) -> bool:
    return any(store.has(dataset, backbone, part) for part in IMAGE_PARTS)


def _from_store(store: Store, dataset: str, backbone: str, pool_cap: int | None) -> Sizes:
    _, labels, n_classes = pool_rows(store, dataset, backbone, pool_cap).drawable()
    manifest = store.manifest(dataset, backbone, store.part_of(dataset, backbone, "test"))
    stored = store.manifest(dataset, backbone, store.part_of(dataset, backbone, "pool")).pool_cap
    if stored is not None and (pool_cap is None or pool_cap > stored):
        raise StudyError(
            f"the pool of {dataset} with {backbone} in {store.root} was encoded with at most {stored} pictures of a "
            f"class; the study wants {'all' if pool_cap is None else pool_cap}. Encode it into another folder: "
            f"kshot encode --dataset {dataset} --backbone {backbone} --features FOLDER"
        )
    n_test = manifest.rows - (len(labels) if manifest.part == "all" else 0)
    smallest = int(np.bincount(labels, minlength=n_classes).min())
    return Sizes(True, n_classes, manifest.dim, n_test, smallest, len(labels))


def from_catalog(dataset: str, backbone: str, pool_cap: int | None) -> Sizes:
    """Sizes as published for the dataset."""
    entry = catalog.dataset_entry(dataset)
    assert entry is not None  # the caller looked
    n_test, dim = entry.n_test or 30 * entry.classes, catalog.backbones()[backbone].dim
    n_pool, smallest = entry.n_pool or n_test, entry.smallest_pool
    if dataset.endswith(catalog.COOP_SUFFIX):
        # What is published of a pool holds for the official split.
        smallest = None
    elif entry.split == "self":
        n_pool = int(n_test * POOL_SHARE / (1 - POOL_SHARE))
        smallest = smallest or n_pool // entry.classes
        return Sizes(False, entry.classes, dim, n_test, smallest, n_pool)
    n_pool = n_pool if pool_cap is None else min(n_pool, pool_cap * entry.classes)
    return Sizes(False, entry.classes, dim, n_test, smallest, n_pool)


def _not_stored(store: Store, dataset: str, backbone: str, wanted: Iterable[tuple[str, str]]) -> str:
    """The error for the first missing stratum, with the command that encodes it and others like it."""
    stored = {f"{m.dataset}/{m.backbone}" for m in store.readable()}
    known = stored | {f"{name}/{simulated.BACKBONE}" for name in simulated.WORLDS}
    where = f"The study needs its features in {store.root}; see `kshot ls features`."
    absent = [stratum for stratum in wanted if not _stored(store, *stratum)]
    names = [name for name, encoder in absent if encoder == backbone]
    encoders = [encoder for name, encoder in absent if name == dataset]
    named = catalog.not_encoded(names, encoders, store.root)
    return named or unknown("dataset/backbone", f"{dataset}/{backbone}", known, where)
