"""What a run will take, before it runs: each method is timed here on two simulated cells and extrapolated."""

from dataclasses import dataclass, replace

from kshot.bench.execution.cell import run_method
from kshot.bench.records.schema import Record
from kshot.bench.study import Cell, MethodSpec
from kshot.bench.work import Work
from kshot.datasets.simulated import World, sample
from kshot.episodes.stored_views import OneView, StoredViews
from kshot.episodes.stratum import Prior, Stratum
from kshot.solvers.rows import unit_rows
from kshot.types import Labelled

# Two sizes tell what a method costs at least and how it grows; one alone would blow up its fixed cost.
PROBES = tuple(
    (World("probe", classes, between=0.3, within=0.5, text_signal=0.6, text_error=0.3), shots)
    for classes, shots in ((20, 4), (80, 8))
)
BYTES_PER_FILE = 14_000
BYTES_PER_RECORD = 500
# Measured over the paper's sizes.
ANSWER_BYTES_PER_PICTURE = 4


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds on one core and bytes on disk for the missing cells."""

    cpu_seconds: float
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class Growth:
    """seconds = fixed + slope · work."""

    fixed: float
    slope: float

    def at(self, work: float) -> float:
        return self.fixed + self.slope * work


def forecast(work: Work) -> Forecast:
    """A forecast good to a factor of about two."""
    growth = _measure(
        {spec.name: spec for specs in work.missing.values() for spec in specs}, work.study.dtype
    )
    seconds, disk = 0.0, 0
    for cell, specs in work.missing.items():
        size = work.strata[cell.dataset, cell.backbone]
        for spec in specs:
            fit, score, sees_test = growth[spec.name]
            seconds += fit.at(_fit_work(size.classes, cell.shots, size.dim, size.n_test, sees_test))
            seconds += score.at(size.n_test * size.classes * size.dim)
        per_record = BYTES_PER_RECORD + size.n_test // 8
        per_record += ANSWER_BYTES_PER_PICTURE * size.n_test if work.study.answers else 0
        disk += BYTES_PER_FILE + len(specs) * per_record
    return Forecast(seconds, disk)


def _fit_work(classes: int, shots: int, dim: int, n_test: int, sees_test: bool) -> float:
    """Fitting grows with shots × classes × dimension; an oracle's search with test pictures × shots."""
    rows = classes * shots
    return float(n_test * rows if sees_test else rows * classes * dim)


def _measure(specs: dict[str, MethodSpec], dtype: str) -> dict[str, tuple[Growth, Growth, bool]]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # as a worker has it
        small, large = (_probe(world, shots, specs, dtype) for world, shots in PROBES)
    found = {}
    for name in specs:
        sees_test = "test" in small[name].sees
        fit_work = [
            _fit_work(w.classes, k, w.dim, small[name].n_test * w.classes // 20, sees_test) for w, k in PROBES
        ]
        score_work = [float(w.classes * w.test_per_class * w.classes * w.dim) for w, _ in PROBES]
        fit = _line(fit_work, [small[name].fit_seconds, large[name].fit_seconds])
        score = _line(score_work, [small[name].score_seconds, large[name].score_seconds])
        found[name] = (fit, score, sees_test)
    return found


def _line(work: list[float], seconds: list[float]) -> Growth:
    slope = max(0.0, (seconds[1] - seconds[0]) / (work[1] - work[0]))
    return Growth(max(0.0, seconds[0] - slope * work[0]), slope)


def _probe(world: World, shots: int, specs: dict[str, MethodSpec], dtype: str) -> dict[str, Record]:
    drawn = sample(world)
    pool, test = (
        Labelled(unit_rows(rows.X.astype(dtype), "probe"), rows.y) for rows in (drawn.pool, drawn.test)
    )
    pool_ids, test_ids = (tuple(map(str, range(len(part.y)))) for part in (pool, test))
    stratum = Stratum("probe", "probe", pool, pool_ids, test, test_ids, world.classes, True, None, {})
    # Views cost by their number, not by what they show.
    same = OneView(pool.X, {name: row for row, name in enumerate(pool_ids)}, "")
    asked = {spec.views for spec in specs.values() if spec.views is not None}
    stratum = replace(stratum, views={views: StoredViews((same,) * views.count, dtype) for views in asked})
    prior = Prior(drawn.text.astype(dtype), None, "")
    cell = Cell("probe", "probe", "probe", shots, 0)
    episode = stratum.episode(cell.shots, cell.seed, prior.text)
    return {name: run_method(cell, spec, episode, stratum, prior) for name, spec in specs.items()}
