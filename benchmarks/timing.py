"""Times methods on generated features, trained ones for a few of their epochs."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from kshot.bench.costs import CELL_ITSELF, CellSize, Costs, TimedMethod, Timing, views_of

from kshot.bench.cell import run_cell, run_method
from kshot.bench.records import Records
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.simulated import World, sample
from kshot.data.store import ImageFeatures, Manifest
from kshot.data.stratum import Prior, Stratum
from kshot.data.views import StoredViews
from kshot.methods import registry
from kshot.methods.shared_work import SharedWork
from kshot.solvers.rows import frozen, unit_rows
from kshot.types import Labelled

# Parameters that say how often a method does the same again. Of many turns some are timed, and all are counted at their
# price.
TURNS = ("epochs", "iterations", "beta_points")
FEW_TURNS, SECONDS_OF_TURNS = 2, 0.3
# Beyond so many sizes a method is only tried where it takes less than this.
LEAST_SIZES, SECONDS_AT_A_SIZE = 2, 3.0
# Modules are loaded at the first fit.
WARM_UP = CellSize(3, 2, 64, 30)


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
            print(f"timed {size}", flush=True)
    return found


def _time_size(size: CellSize, specs: Sequence[MethodSpec], dtype: str, found: Costs) -> None:
    stratum, prior = _generate(size, specs, dtype)
    cell = Cell("probe", "probe", "probe", size.shots, 0)
    for views in {0, views_of(specs)}:
        drawn = stratum if views else replace(stratum, views={})
        itself = _time_cell(cell, replace(size, views=views), drawn, prior)
        found.setdefault(TimedMethod(CELL_ITSELF, views), []).append(itself)
    episode, work = stratum.episode(cell.shots, cell.seed, prior), SharedWork()

    def seconds_of(spec: MethodSpec) -> float | None:
        start = time.process_time()
        record = run_method(cell, spec, episode, stratum, prior, keep_answers=True, work=work)
        return time.process_time() - start if record.status == "ok" else None

    for spec in specs:
        problem = replace(size, views=views_of([spec]))
        before = found.setdefault(TimedMethod(spec.recipe, problem.views), [])
        if turns_of(spec) is not None or _affordable(before, problem):
            seconds = all_turns(spec, seconds_of)
            if seconds is not None:
                before.append(Timing(problem, seconds))


def turns_of(spec: MethodSpec) -> tuple[str, int] | None:
    """The parameter that repeats, and how often, where that is often."""
    params = registry.create(spec.use, **spec.params).get_params()
    counts = ((name, params[name]) for name in TURNS if params.get(name) is not None)
    return next(((name, turns) for name, turns in counts if turns > 8 * FEW_TURNS), None)


def all_turns(spec: MethodSpec, seconds_of: Callable[[MethodSpec], float | None]) -> float | None:
    """Seconds of a whole fit, from two fits of few turns where it has many; None where it cannot be fitted."""
    repeated = turns_of(spec)
    if repeated is None:
        return seconds_of(spec)
    name, whole = repeated

    def some(turns: int) -> float | None:
        return seconds_of(replace(spec, params={**spec.params, name: turns}))

    few, further = some(FEW_TURNS), 4 * FEW_TURNS
    while few is not None:
        more = some(FEW_TURNS + further)
        if more is None:
            return None
        if more - few > SECONDS_OF_TURNS or further == whole - FEW_TURNS:
            return few + (more - few) / further * (whole - FEW_TURNS)
        further = min(4 * further, whole - FEW_TURNS)
    return None


def _time_cell(cell: Cell, problem: CellSize, stratum: Stratum, prior: Prior) -> Timing:
    start = time.process_time()
    facts, records = run_cell(cell, [MethodSpec("zero_shot", "zero_shot")], stratum, prior)
    with tempfile.TemporaryDirectory() as folder:
        Records(folder).write(Study("probe", ()), facts, records)
    return Timing(problem, time.process_time() - start)


def _affordable(before: list[Timing], problem: CellSize) -> bool:
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
        pool_per_class=max(problem.shots + 8, problem.n_pool // problem.classes),
        test_per_class=per_class,
    )
    drawn = sample(world)
    pool, test = (
        Labelled(frozen(unit_rows(rows.X.astype(dtype), "probe")), frozen(rows.y)) for rows in (drawn.pool, drawn.test)
    )
    pool_ids, test_ids = (tuple(map(str, range(len(part.y)))) for part in (pool, test))
    # Views cost by their number, not by what they show.
    same = ImageFeatures(
        pool.X, pool.y, pool_ids, Manifest("probe", "probe", "view", "", len(pool.X), problem.dim, dtype, ())
    )
    views = {spec.views: StoredViews((same,) * spec.views.count, dtype) for spec in specs if spec.views is not None}
    stratum = Stratum("probe", "probe", pool, pool_ids, test, test_ids, problem.classes, True, None, {}, views=views)
    return stratum, Prior(frozen(drawn.text.astype(dtype)))
