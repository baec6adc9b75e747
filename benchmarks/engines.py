"""Engines on a mixed study: two workers against one, the engine's own overhead, dask against local."""

import tempfile
import time
from pathlib import Path

from benchmarks.measure import verdict
from kshot.bench.execution.engines.local import LocalEngine
from kshot.bench.execution.run import compute, open_run
from kshot.bench.records.folder import Records
from kshot.bench.records.query import query
from kshot.bench.study import parse_study

STUDY = {
    "name": "mixed",
    "datasets": ["sim-satellite", "sim-pets", "sim-cars", "sim-scenes", "sim-food"],
    "backbones": ["simulated"],
    "tiers": ["dataset"],
    "shots": [1, 2, 4, 8, 16],
    "seeds": list(range(4)),
    "methods": [
        "zero_shot",
        "ncm",
        "js_blend",
        "loo_blend",
        "oracle_lambda",
        "mse_oracle",
        "gda_alpha_loo",
        "fold_gda",
        "tip_adapter_loo",
        "clap",
        "zs_lp",
        "lpp",
        "clip_adapter",
    ],
}


def run_with(engine, folder: Path, name: str) -> tuple[float, float]:
    """Wall seconds of a whole run, and the seconds its methods took."""
    records = Records(folder / name)
    work = open_run(parse_study(STUDY, "benchmark"), folder / "features", records)
    start = time.perf_counter()
    compute(work, folder / "features", records, engine)
    wall = time.perf_counter() - start
    return wall, query(records.folder, "select sum(fit_seconds + score_seconds) from records")[0][0]


def main() -> int:
    from kshot.bench.execution.engines.dask import DaskEngine

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        open_run(parse_study(STUDY, "benchmark"), folder / "features", Records(folder / "first"))
        one, busy = run_with(LocalEngine(1), folder, "one")
        two, _ = run_with(LocalEngine(2), folder, "two")
        dask, _ = run_with(DaskEngine(2), folder, "dask")
    overhead = 1 - busy / one
    print(f"one worker {one:.1f} s (methods {busy:.1f} s), two {two:.1f} s, dask with two {dask:.1f} s")
    print(
        f"engine overhead {100 * overhead:.1f} % of the run with one worker, start-up included (allowed 3 %)"
    )
    return (
        verdict("local, two workers against one", one / two, 1.8)
        + (overhead > 0.03)
        + verdict("dask against local, two workers each", two / dask, 0.9)
    )


if __name__ == "__main__":
    raise SystemExit(main())
