"""What a run will take, before it runs: each method is timed once on a small simulated cell and scaled up."""

from dataclasses import dataclass

from kshot.bench.cell import run_method
from kshot.bench.prepare import Work
from kshot.bench.records import Record
from kshot.bench.study import Cell
from kshot.episodes.stratum import Prior, Stratum
from kshot.features import simulate
from kshot.features.store import Store
from kshot.solvers.rows import unit_rows
from kshot.types import Labelled

PROBE = simulate.World("probe", 20, between=0.3, within=0.5, text_signal=0.6, text_error=0.3)
PROBE_SHOTS = 4
BYTES_PER_FILE = 14_000
BYTES_PER_RECORD = 500


@dataclass(frozen=True, slots=True)
class Size:
    """What the cost of a cell grows with."""

    shots: int
    classes: int
    dim: int
    n_test: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds on one core and bytes on disk for the missing cells."""

    cpu_seconds: float
    disk_bytes: int


def estimate(work: Work, store: Store) -> Estimate:
    """A forecast within a factor of about two: fitting grows with N·C·d, scoring with n·C·d."""
    probe_size, probes = _probe(work)
    sizes: dict[tuple[str, str], Size] = {}
    seconds, disk = 0.0, 0
    for cell in work.missing:
        stratum = (cell.dataset, cell.backbone)
        if stratum not in sizes:
            sizes[stratum] = _size(store, *stratum)
        size = sizes[stratum]
        width = size.classes * size.dim / (probe_size.classes * probe_size.dim)
        scoring = width * size.n_test / probe_size.n_test
        fitting = width * cell.shots * size.classes / (probe_size.shots * probe_size.classes)
        for spec in work.cells[cell]:
            probe = probes[spec.name]
            seconds += probe.score_seconds * scoring
            seconds += probe.fit_seconds * (scoring if "test" in probe.sees else fitting)
        disk += BYTES_PER_FILE + len(work.cells[cell]) * (BYTES_PER_RECORD + size.n_test // 8)
    return Estimate(seconds, disk)


def _probe(work: Work) -> tuple[Size, dict[str, Record]]:
    drawn = simulate.sample(PROBE)
    pool, test = (
        Labelled(unit_rows(rows.X.astype(work.study.dtype), "probe"), rows.y)
        for rows in (drawn.pool, drawn.test)
    )
    ids = tuple(map(str, range(len(pool.y))))
    stratum = Stratum("probe", "probe", pool, ids, test, PROBE.classes, True, None, {})
    prior = Prior(drawn.text.astype(work.study.dtype), None, "")
    cell = Cell("probe", "probe", "probe", PROBE_SHOTS, 0)
    episode = stratum.episode(cell.shots, cell.seed, prior.text)
    specs = {spec.name: spec for specs in work.cells.values() for spec in specs}

    def measure() -> dict[str, Record]:
        return {name: run_method(cell, spec, episode, stratum, prior) for name, spec in specs.items()}

    measure()  # pays for imports and first-time allocations
    records = measure()
    return Size(PROBE_SHOTS, PROBE.classes, PROBE.dim, episode.n_test), records


def _size(store: Store, dataset: str, backbone: str) -> Size:
    part = "all" if store.has(dataset, backbone, "all") else "test"
    manifest = store.images(dataset, backbone, part).manifest
    rows = manifest.rows if part == "test" else round(0.32 * manifest.rows)
    return Size(0, len(manifest.classes), manifest.dim, rows)
