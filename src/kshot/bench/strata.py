"""The (dataset, backbone) pairs of a study: their sizes, from the stored features or from the catalog where nothing is
stored yet, and whether tiers and views are there."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kshot.bench.study import LARGEST, Cell, Study
from kshot.data import catalog, simulated
from kshot.data.episode import POOL_SHARE, drawn_rows
from kshot.data.store import IMAGE_PARTS, Store, view_part
from kshot.data.stratum import pool_rows
from kshot.errors import KshotError, StudyError, unknown


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a stratum; `smallest_pool`, the pool pictures of the smallest class, is None where it is not known."""

    stored: bool
    classes: int
    dim: int
    n_test: int
    smallest_pool: int | None
    n_pool: int

    def left(self, shots: int) -> int:
        """Pool pictures of the smallest class beside its shots."""
        return LARGEST if self.smallest_pool is None else self.smallest_pool - shots

    def operations(self, shots: int) -> int:
        """A number that grows like the seconds of a cell: heads are fitted to the shots and score the test pictures."""
        return self.classes * self.dim * (300 * shots * self.classes + 50 * self.n_test)


def strata_of(study: Study, store: Store, *, must_be_stored: bool) -> dict[tuple[str, str], Sizes]:
    """Every (dataset, backbone) of the study; simulated worlds that are absent or torn are written first where they
    must be stored."""
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


def stored_parts(
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
