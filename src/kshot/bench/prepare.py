"""From a study to the work that remains, with every name checked before anything runs."""

from dataclasses import dataclass

from kshot.bench.records import Records
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.episodes.draw import too_thin
from kshot.episodes.stratum import pool_labels
from kshot.errors import StudyError, unknown
from kshot.features import simulate
from kshot.features.store import IMAGE_PARTS, Store
from kshot.methods import registry


@dataclass(frozen=True)
class Batch:
    """Cells that share features and shots and differ in seed only: the unit that engines hand out."""

    cells: tuple[Cell, ...]
    specs: tuple[MethodSpec, ...]


@dataclass(frozen=True)
class Work:
    """A study against a records folder."""

    study: Study
    cells: dict[Cell, tuple[MethodSpec, ...]]
    dropped: frozenset[Cell]
    done: frozenset[Cell]

    @property
    def missing(self) -> list[Cell]:
        return [cell for cell in self.cells if cell not in self.done and cell not in self.dropped]

    def batches(self) -> list[Batch]:
        """Missing cells grouped over seeds; most shots first, so that long work does not end the run."""
        groups: dict[tuple, list[Cell]] = {}
        for cell in self.missing:
            methods = tuple(spec.name for spec in self.cells[cell])
            key = (cell.dataset, cell.backbone, cell.tier, cell.shots, methods)
            groups.setdefault(key, []).append(cell)
        batches = [Batch(tuple(cells), self.cells[cells[0]]) for cells in groups.values()]
        return sorted(batches, key=lambda batch: -batch.cells[0].shots)


def prepare(study: Study, store: Store, records: Records) -> Work:
    """Check all names, write simulated worlds that are asked for and absent, find what is missing."""
    _check_methods(study)
    strata = {(cell.dataset, cell.backbone): None for cell in study.cells()}
    for dataset, backbone in strata:
        _ensure_features(store, dataset, backbone)
    _check_tiers(study, store)
    cells = study.cells()
    labels = {stratum: pool_labels(store, *stratum) for stratum in strata}
    dropped = frozenset(cell for cell in cells if too_thin(*labels[cell.dataset, cell.backbone], cell.shots))
    return Work(study, cells, dropped, frozenset(records.done(cells)))


def _check_methods(study: Study) -> None:
    for spec in study.methods().values():
        registry.create(spec.use, **spec.params)


def _ensure_features(store: Store, dataset: str, backbone: str) -> None:
    if any(store.has(dataset, backbone, part) for part in IMAGE_PARTS):
        return
    if dataset in simulate.WORLDS and backbone == simulate.BACKBONE:
        simulate.write(simulate.WORLDS[dataset], store)
        return
    stored = {f"{m.dataset}/{m.backbone}" for m in (*store.manifests(), *store.bundled())}
    known = stored | {f"{name}/{simulate.BACKBONE}" for name in simulate.WORLDS}
    raise StudyError(
        unknown(
            "dataset/backbone",
            f"{dataset}/{backbone}",
            known,
            f"The study needs its features in {store.root}; see `kshot ls features`.",
        )
    )


def _check_tiers(study: Study, store: Store) -> None:
    """Every tier must be stored, except for backbones without any text, whose text methods are undefined."""
    for dataset, backbone, tier in {(c.dataset, c.backbone, c.tier): None for c in study.cells()}:
        known = store.tiers(dataset, backbone)
        if known and tier not in known:
            where = f"There is no text of that tier for {dataset} with {backbone} in {store.root}."
            raise StudyError(unknown("tier", tier, known, where))
