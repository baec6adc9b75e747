"""Engines on a mixed study: two workers against one, the engine's own overhead, dask against local."""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from kshot.bench.engines.local import LocalEngine

from benchmarks.forecast import STRATA
from benchmarks.measure import verdict
from kshot.bench.record import SECONDS
from kshot.bench.records import Records, load_table
from kshot.bench.run import ThisProcess, compute, open_run
from kshot.bench.study import Study, load_study
from kshot.data.simulated import BACKBONE, TIER, write
from kshot.data.store import Store

SEEDS = (0, 1, 2)


def mixed_study() -> Study:
    """The paper's fifteen methods and all its shots on strata of its smaller sizes.

    Its cells take a quarter of a second to half a minute.
    """
    mixed = load_study("paper").on_features([(world.name, BACKBONE, TIER) for world in STRATA])
    return replace(mixed, grids=tuple(replace(grid, seeds=SEEDS) for grid in mixed.grids))


def run_with(engine, folder: Path, name: str) -> tuple[float, float]:
    """Wall seconds of a whole run, and the seconds its methods took."""
    records = Records(folder / name)
    work = open_run(mixed_study(), folder / "features", records)
    start = time.perf_counter()
    compute(work, folder / "features", records, engine)
    wall = time.perf_counter() - start
    return wall, sum(sum(load_table(records.folder)[name].to_pylist()) for name in SECONDS)


def main() -> int:
    from kshot.bench.engines.dask import DaskEngine

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for world in STRATA:
            write(world, Store(folder / "features"))
        one, busy = run_with(ThisProcess(), folder, "one")
        two, _ = run_with(LocalEngine(2), folder, "two")
        dask, _ = run_with(DaskEngine(2), folder, "dask")
    overhead = 1 - busy / one
    print(f"one worker {one:.1f} s (methods {busy:.1f} s), two {two:.1f} s, dask with two {dask:.1f} s")
    print(f"engine overhead {100 * overhead:.1f} % of the run with one worker, start-up included (allowed 3 %)")
    return (
        verdict("local, two workers against one", one / two, 1.9)
        + (overhead > 0.03)
        + verdict("dask against local, two workers each", two / dask, 0.9)
    )
