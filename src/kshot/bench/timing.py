"""Methods timed here and now, on generated features of sizes like those of a study's cells."""

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kshot.bench.costs import CellSize, Costs, Measured, Subject
from kshot.bench.execution.cell import run_cell, run_method
from kshot.bench.records.folder import Records
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.datasets.simulated import World, sample
from kshot.episodes.stored_views import OneView, StoredViews
from kshot.episodes.stratum import Prior, Stratum
from kshot.solvers.rows import unit_rows
from kshot.types import Labelled

# Multiplications of one pass over the shots, 60 classes with 16 shots in 512 dimensions: half a second of CLAP.
LARGEST = 3e7
# Beyond so many sizes a method is only tried where it takes less than this.
LEAST_SIZES, SECONDS_AT_A_SIZE = 3, 4.0
# Modules are loaded at the first fit.
WARM_UP = CellSize(3, 2, 64, 30)
# The cell itself: loading, drawing, measuring its geometry, writing its file.
CELL_ITSELF = ""


def probe_sizes(problems: Iterable[CellSize]) -> list[CellSize]:
    """The smallest, the middle and the largest of these, cut to what can be tried, from small to large.

    The largest comes three times, which tells how seconds grow: with few classes, with some, with many of two shots.
    """
    alike = {replace(problem, views=0) for problem in problems}
    if not alike:
        return []
    ordered = sorted(alike, key=lambda problem: (problem.products, problem.n_test))
    largest = ordered[-1]
    few_shots = replace(largest, shots=min(2, largest.shots))
    sizes = {problem.cut(LARGEST) for problem in (ordered[0], ordered[len(ordered) // 2], largest)}
    sizes |= {largest.cut(LARGEST / 4), few_shots.cut(2 * LARGEST)}
    return sorted(sizes, key=lambda problem: problem.products)


def time_methods(specs: Sequence[MethodSpec], sizes: Sequence[CellSize], dtype: str) -> Costs:
    """Processor seconds of each method and of the cell itself, on one thread as a worker has it.

    A method that would take long at a size is not tried there: its smaller sizes tell.
    """
    from threadpoolctl import threadpool_limits

    found: Costs = {}
    with threadpool_limits(1):
        _time_size(WARM_UP, specs, dtype, {})
        for size in sizes:
            _time_size(size, specs, dtype, found)
    return found


def _time_size(size: CellSize, specs: Sequence[MethodSpec], dtype: str, found: Costs) -> None:
    stratum, prior = _generate(size, specs, dtype)
    cell = Cell("probe", "probe", "probe", size.shots, 0)
    for views in {0, views_of(specs)}:
        drawn = stratum if views else replace(stratum, views={})
        itself = _time_cell(cell, replace(size, views=views), drawn, prior)
        found.setdefault(Subject(CELL_ITSELF, views), []).append(itself)
    episode = stratum.episode(cell.shots, cell.seed, prior.text)
    for spec in specs:
        problem = replace(size, views=views_of([spec]))
        before = found.setdefault(Subject(spec.name, problem.views), [])
        if _affordable(before, problem):
            start = time.process_time()
            record = run_method(cell, spec, episode, stratum, prior, keep_answers=True)
            if record.status == "ok":
                before.append(Measured(problem, time.process_time() - start))


def views_of(specs: Iterable[MethodSpec]) -> int:
    """The most augmented views that one of the methods is given."""
    return max((spec.views.count for spec in specs if spec.views is not None), default=0)


def _time_cell(cell: Cell, problem: CellSize, stratum: Stratum, prior: Prior) -> Measured:
    start = time.process_time()
    facts, records = run_cell(cell, [MethodSpec("zero_shot", "zero_shot")], stratum, prior)
    with tempfile.TemporaryDirectory() as folder:
        Records(folder).write(Study("probe", ()), facts, records)
    return Measured(problem, time.process_time() - start)


def _affordable(before: list[Measured], problem: CellSize) -> bool:
    if len(before) < LEAST_SIZES:
        return True
    last = before[-1]
    return last.seconds * problem.products / last.problem.products < SECONDS_AT_A_SIZE


def _generate(problem: CellSize, specs: Sequence[MethodSpec], dtype: str) -> tuple[Stratum, Prior]:
    per_class = -(-problem.n_test // problem.classes)
    world = World(
        "probe",
        problem.classes,
        between=0.3,
        within=0.5,
        text_signal=0.6,
        text_error=0.3,
        dim=problem.dim,
        pool_per_class=2 * problem.shots + 8,
        test_per_class=per_class,
    )
    drawn = sample(world)
    pool, test = (
        Labelled(unit_rows(rows.X.astype(dtype), "probe"), rows.y) for rows in (drawn.pool, drawn.test)
    )
    pool_ids, test_ids = (tuple(map(str, range(len(part.y)))) for part in (pool, test))
    # Views cost by their number, not by what they show.
    same = OneView(pool.X, {name: row for row, name in enumerate(pool_ids)}, "")
    views = {
        spec.views: StoredViews((same,) * spec.views.count, dtype) for spec in specs if spec.views is not None
    }
    stratum = Stratum(
        "probe", "probe", pool, pool_ids, test, test_ids, problem.classes, True, None, {}, views=views
    )
    return stratum, Prior(drawn.text.astype(dtype), None, "")
