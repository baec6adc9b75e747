"""What a run will take, before it runs: each method is timed once on a small simulated cell and scaled up."""

from dataclasses import dataclass

from kshot.bench.cell import run_method
from kshot.bench.prepare import Work
from kshot.bench.schema import Record
from kshot.bench.strata import Sizes
from kshot.bench.study import Cell
from kshot.episodes.stratum import Prior, Stratum
from kshot.features import simulate
from kshot.solvers.rows import unit_rows
from kshot.types import Labelled

PROBE = simulate.World("probe", 20, between=0.3, within=0.5, text_signal=0.6, text_error=0.3)
PROBE_SHOTS = 4
BYTES_PER_FILE = 14_000
BYTES_PER_RECORD = 500


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds on one core and bytes on disk for the missing cells."""

    cpu_seconds: float
    disk_bytes: int


def estimate(work: Work) -> Estimate:
    """A forecast good to a factor of a few: fitting grows with N·C·d, scoring with n·C·d."""
    probe, measured = _probe(work)
    seconds, disk = 0.0, 0
    for cell in work.missing:
        size = work.strata[cell.dataset, cell.backbone]
        width = size.classes * size.dim / (probe.classes * probe.dim)
        scoring = width * size.n_test / probe.n_test
        fitting = width * cell.shots * size.classes / (PROBE_SHOTS * probe.classes)
        for spec in work.cells[cell]:
            record = measured[spec.name]
            seconds += record.score_seconds * scoring
            seconds += record.fit_seconds * (scoring if "test" in record.sees else fitting)
        disk += BYTES_PER_FILE + len(work.cells[cell]) * (BYTES_PER_RECORD + size.n_test // 8)
    return Estimate(seconds, disk)


def _probe(work: Work) -> tuple[Sizes, dict[str, Record]]:
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
    specs = work.study.methods()

    def measure() -> dict[str, Record]:
        return {name: run_method(cell, spec, episode, stratum, prior) for name, spec in specs.items()}

    measure()  # pays for imports and first-time allocations
    return Sizes(True, PROBE.classes, PROBE.dim, episode.n_test, None), measure()
