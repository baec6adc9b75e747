"""The statistics and the whole report on records of the size of a full study."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import best_seconds, verdict
from kshot.stats.bootstrap import RESAMPLES, cluster_means, shared_draws

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

CELLS, METHODS, CLUSTERS = 1200, 15, 10
LOOPED = 200


def by_loop(values, clusters, resamples, seed=0):
    """The bootstrap as it is usually written: draw datasets, gather their rows, average every column."""
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(clusters == name) for name in np.unique(clusters)]
    means = np.empty((resamples, values.shape[1]))
    for r in range(resamples):
        rows = np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        means[r] = values[rows].mean(axis=0)
    return means


def bootstrap() -> int:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(CELLS, METHODS))
    clusters = np.repeat([f"d{i}" for i in range(CLUSTERS)], CELLS // CLUSTERS)
    cluster_means(values, clusters)  # pays for scipy's import

    def afresh():
        shared_draws.cache_clear()
        return cluster_means(values, clusters)

    ours = best_seconds(afresh)
    theirs = best_seconds(lambda: by_loop(values, clusters, LOOPED)) * RESAMPLES / LOOPED
    print(
        f"{RESAMPLES} resamples, {CELLS} cells × {METHODS} methods: {ours:.3f} s; a loop over rows {theirs:.1f} s"
    )
    return verdict("bootstrap against a loop", theirs / ours, 20)


def whole_report() -> int:
    """Tables, figures and page; the requirement is a minute on two cores, told as a ratio to it."""
    from kshot.report.context import Context
    from kshot.report.figures import write_figures
    from kshot.report.tables import all_tables
    from kshot.report.write import write_report
    from kshot.stats.panel import panel
    from synthetic_records import EFFECT, SEES, TITLES, as_table, synthetic_rows  # pyright: ignore[reportMissingImports]

    for number in range(METHODS - len(SEES)):
        name = f"extra_{number}"
        SEES[name], TITLES[name], EFFECT[name] = ["support", "text"], f"Extra {number}", number / 5
    rows = synthetic_rows(
        datasets=tuple(f"set-{i}" for i in range(CLUSTERS)),
        tiers=("photo", "dataset", "ensemble", "cupl"),
        shots=(1, 2, 4, 8, 16),
        seeds=range(5),
        methods=tuple(SEES),
    )
    table = as_table(rows)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        found = panel(table)
        tables = all_tables(found)
        tabled = time.perf_counter()
        write_report(found, tables, Path(folder), Context())
        paged = time.perf_counter()
        write_figures(found, Context(), Path(folder) / "figures")
        end = time.perf_counter()
        size = (Path(folder) / "report.html").stat().st_size
    print(
        f"{len(found.shots)} cells × {len(found.methods)} methods ({len(rows)} records): "
        f"tables {tabled - start:.1f} s, page {paged - tabled:.1f} s, figures {end - paged:.1f} s; "
        f"the page has {size / 1e6:.1f} MB"
    )
    return verdict("a minute against the whole report", 60 / (end - start), 1) + verdict(
        "5 MB against the page", 5e6 / size, 1
    )


def main() -> int:
    return bootstrap() + whole_report()


if __name__ == "__main__":
    raise SystemExit(main())
