"""Sizes of a study's strata: from the stored features, or from the catalog where nothing is stored yet."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kshot.bench.study import Cell, Study
from kshot.datasets import simulated
from kshot.datasets.shifts import can_be_written, is_shift_written, write_shift
from kshot.episodes.draw import POOL_SHARE
from kshot.episodes.stratum import pool_labels
from kshot.errors import StudyError, unknown
from kshot.features import catalog
from kshot.features.store import IMAGE_PARTS, Store, view_part
from kshot.profiles import plain_name


@dataclass(frozen=True, slots=True)
class Sizes:
    """What cost and the thin-pool rule depend on; `smallest_pool` is None where it is not known."""

    stored: bool
    classes: int
    dim: int
    n_test: int
    smallest_pool: int | None
    n_pool: int

    def drops(self, shots: int, least: int) -> bool:
        """Whether fewer than `least` pool pictures of some class would be left."""
        return self.smallest_pool is not None and self.smallest_pool - shots < least

    def cost(self, shots: int, trained: int) -> int:
        """Grows as the seconds of a cell do: a trained head passes over its shots hundreds of times."""
        return self.classes * self.dim * (300 * shots * self.classes * trained + 50 * self.n_test)


def strata_of(study: Study, store: Store, *, must_be_stored: bool) -> dict[tuple[str, str], Sizes]:
    """Every (dataset, backbone) of the study; simulated worlds and shifts that are absent or torn are written first
    where they must be stored."""
    strata = {}
    wanted = dict.fromkeys((cell.dataset, cell.backbone) for cell in study.cells())
    for dataset, backbone in wanted:
        world = simulated.WORLDS.get(plain_name(dataset)) if backbone == simulated.BACKBONE else None
        if world and not simulated.is_written(plain_name(dataset), store):
            if not must_be_stored:
                strata[dataset, backbone] = _from_world(world)
                continue
            simulated.write(world, store)
        shift = catalog.shifts().get(plain_name(dataset))
        if shift and can_be_written(shift, backbone, store) and not is_shift_written(shift, backbone, store):
            write_shift(shift, backbone, store)
        if _stored(store, dataset, backbone):
            strata[dataset, backbone] = _from_store(store, dataset, backbone)
        elif not must_be_stored and catalog.dataset_entry(dataset) and backbone in catalog.backbones():
            strata[dataset, backbone] = _from_catalog(dataset, backbone)
        else:
            raise StudyError(_not_stored(store, dataset, backbone, wanted))
    return strata


def check_tiers(study: Study, store: Store) -> None:
    """Every tier must be stored, except for backbones without any text, whose text methods are undefined."""
    for dataset, backbone, tier in {(c.dataset, c.backbone, c.tier): None for c in study.cells()}:
        known = store.tiers(dataset, backbone)
        if not known and backbone == simulated.BACKBONE:
            known = [simulated.TIER]
        if known and tier not in known:
            where = f"There is no text of that tier for {dataset} with {backbone} in {store.root}."
            raise StudyError(unknown("tier", tier, known, where))


def check_views(study: Study, store: Store) -> None:
    """Augmented views must be stored, for every stratum whose methods are given them."""
    wanted = {
        (c.dataset, c.backbone, s.views): None for c, specs in study.cells().items() for s in specs if s.views
    }
    for dataset, backbone, views in wanted:
        part = "all" if store.has(dataset, backbone, "all") else "pool"
        parts = (view_part(part, views.recipe, number) for number in range(views.count))
        lacks = [name for name in parts if not store.has(dataset, backbone, name)]
        if lacks:
            raise StudyError(
                f"the study asks for {views} of {dataset} with {backbone}; {store.root} lacks {len(lacks)} of them, "
                f"first {lacks[0]}. Encode the pictures again with --views {views.count} --view-recipe {views.recipe}."
            )


def thin_cells(study: Study, strata: dict[tuple[str, str], Sizes]) -> frozenset[Cell]:
    return frozenset(
        cell
        for cell in study.cells()
        if strata[cell.dataset, cell.backbone].drops(cell.shots, study.least_residue)
    )


def _stored(store: Store, dataset: str, backbone: str) -> bool:
    return any(store.has(dataset, backbone, part) for part in IMAGE_PARTS)


def _from_store(store: Store, dataset: str, backbone: str) -> Sizes:
    labels, n_classes = pool_labels(store, dataset, backbone)
    part = "all" if store.has(dataset, backbone, "all") else "test"
    manifest = store.manifest(dataset, backbone, part)
    n_test = manifest.rows if part == "test" else manifest.rows - len(labels)
    smallest = int(np.bincount(labels, minlength=n_classes).min())
    return Sizes(True, n_classes, manifest.dim, n_test, smallest, len(labels))


def _from_world(world: simulated.World) -> Sizes:
    n_test = world.classes * world.test_per_class
    n_pool = world.classes * world.pool_per_class
    return Sizes(False, world.classes, world.dim, n_test, world.pool_per_class, n_pool)


def _from_catalog(dataset: str, backbone: str) -> Sizes:
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


def _not_stored(store: Store, dataset: str, backbone: str, wanted: Iterable[tuple[str, str]]) -> str:
    """The first stratum that is missing, and what to type for it and its like."""
    stored = {f"{m.dataset}/{m.backbone}" for m in store.readable()}
    known = stored | {f"{name}/{simulated.BACKBONE}" for name in simulated.WORLDS}
    where = f"The study needs its features in {store.root}; see `kshot ls features`."
    absent = [stratum for stratum in wanted if not _stored(store, *stratum)]
    names = [name for name, encoder in absent if encoder == backbone]
    encoders = [encoder for name, encoder in absent if name == dataset]
    named = catalog.not_encoded(names, encoders, store.root)
    return named or unknown("dataset/backbone", f"{dataset}/{backbone}", known, where)
