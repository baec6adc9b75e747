"""The statistics and the whole report on records of the size of a full study."""

import itertools
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import SMALL
from benchmarks.measure import best_seconds, children_seconds, verdict
from kshot.stats.bootstrap import LEVEL, RESAMPLES, cluster_means, critical_value, shared_draws

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

CELLS, METHODS, CLUSTERS = (200, 9, 4) if SMALL else (1200, 15, 10)
LOOPED = 200
OPEN = Path(__file__).resolve().parents[1] / "docs" / "open" / "records"


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
    ends = [(one.low, one.high) for one in afresh() if one.low is not None and one.high is not None]
    wide = np.diff(ends)[:, 0] / 2 / critical_value(CLUSTERS - 1, LEVEL)
    assert np.allclose(wide, by_loop(values, clusters, LOOPED).std(axis=0), rtol=0.3), "the two ways disagree"
    theirs = best_seconds(lambda: by_loop(values, clusters, LOOPED)) * RESAMPLES / LOOPED
    print(f"{RESAMPLES} resamples, {CELLS} cells × {METHODS} methods: {ours:.3f} s; a loop over rows {theirs:.1f} s")
    return verdict("bootstrap against a loop", theirs / ours, 20)


def full_study():
    """Made-up records of 4,800 cells and 15 methods."""
    from synthetic_records import EFFECT, SEES, TITLES, as_table, synthetic_rows  # pyright: ignore[reportMissingImports]

    for number in range(METHODS - len(SEES)):
        name = f"extra_{number}"
        SEES[name], TITLES[name], EFFECT[name] = ["support", "text"], f"Extra {number}", number / 5
    rows = synthetic_rows(
        datasets=tuple(f"set-{i}" for i in range(CLUSTERS)),
        backbones=("ViT-B-16", "ViT-B-32", "RN50", "RN101"),
        tiers=("photo", "dataset", "ensemble", "cupl"),
        shots=(1, 2, 4, 8, 16),
        seeds=range(1 if SMALL else 6),
        methods=tuple(SEES),
    )
    return as_table(rows)


def whole_report() -> int:
    """Tables, figures and page in a minute and 2 GB; a page of 5 MB that shows itself in 1 s and filters in 0.2 s."""
    from kshot.report.context import Context
    from kshot.report.figures import write_figures
    from kshot.report.tables import all_tables
    from kshot.report.write import write_report
    from kshot.stats.panel import panel

    table = full_study()
    with tempfile.TemporaryDirectory() as folder:
        times = [_clocks()]
        found = panel(table)
        context = Context(probed=_probes(found))
        tables = all_tables(found, context)
        times.append(_clocks())
        write_report(found, tables, Path(folder), context)
        times.append(_clocks())
        write_figures(found, context, Path(folder) / "figures")
        times.append(_clocks())
        size = (Path(folder) / "report.html").stat().st_size
        shown, filtered = in_a_browser(Path(folder) / "report.html")
    steps = [
        f"{name} {after[0] - before[0]:.1f} s ({after[1] - before[1]:.1f} s of processor time)"
        for name, before, after in zip(("tables", "page", "figures"), times, times[1:], strict=False)
    ]
    # Kilobytes on Linux; the made-up records are in it.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{len(found.shots)} cells × {len(found.methods)} methods: {', '.join(steps)}")
    print(
        f"page {size / 1e6:.1f} MB, memory {memory / 1e9:.2f} GB; "
        f"in the browser: first view {shown:.2f} s, filter {filtered:.2f} s"
    )
    return (
        verdict("a minute against the whole report", 60 / (times[-1][0] - times[0][0]), 1)
        + verdict("2 GB against its memory", 2e9 / memory, 1)
        + verdict("5 MB against the page", 5e6 / size, 1)
        + verdict("a second against the first view", 1 / shown, 1)
        + verdict("0.2 s against a filter", 0.2 / filtered, 1)
    )


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _probes(found):
    """The offset's cost at five steps in every cell, as `kshot records probe` stores it."""
    from kshot.report.context import Probed

    return Probed(
        {f"translation.a = {a:+.2f}": dict.fromkeys(found.cell_keys(), -abs(a)) for a in (-0.5, -0.25, 0, 0.25, 0.5)}
    )


# What a reader changes; each answers with the milliseconds until everything that follows it is laid out.
FILTERS = [
    f"""() => {{
        const control = document.querySelector('{control}'), start = performance.now();
        {act}
        document.body.getBoundingClientRect();
        return performance.now() - start;
    }}"""
    for control, act in (
        ("#filter-tier", "control.value = 'photo'; control.dispatchEvent(new Event('change'));"),
        ("#filter-backbone", "control.value = 'RN50'; control.dispatchEvent(new Event('change'));"),
        ("#filter-baseline", "control.value = 'zero_shot'; control.dispatchEvent(new Event('change'));"),
        ("#filter-dataset input", "control.click();"),
        ("#filter-shots input", "control.click();"),
    )
]


def in_a_browser(page: Path) -> tuple[float, float]:
    """Seconds until the page is there, and those of the slowest filter; each the best of three. Beside them stands the
    processor time of the page's thread, which other work on the machine does not lengthen."""
    from playwright.sync_api import sync_playwright

    shown, filtered = [], []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(3):
            opened = browser.new_page()
            clock = opened.context.new_cdp_session(opened)
            clock.send("Performance.enable", {"timeDomain": "threadTicks"})
            opened.goto(page.as_uri())
            ticks = [_thread_seconds(clock)]
            seconds = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1e3"
            shown.append(opened.evaluate(seconds))
            waits = []
            for change in FILTERS:
                waits.append(opened.evaluate(change) / 1e3)
                ticks.append(_thread_seconds(clock))
            filtered.append(max(waits))
            spent = ", ".join(f"{after - before:.2f}" for before, after in itertools.pairwise(ticks))
            print(f"the page's thread: first view {ticks[0]:.2f} s, filters {spent} s of processor time")
            opened.close()
        browser.close()
    return min(shown), min(filtered)


def _thread_seconds(clock) -> float:
    metrics = clock.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def open_report() -> int:
    """The report of the open benchmark from its kept records, in half a minute."""
    with tempfile.TemporaryDirectory() as folder:
        before, wall = children_seconds(), time.perf_counter()
        command = [sys.executable, "-m", "kshot", "report", "open", "--records", str(OPEN), "--output", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took, cpu = time.perf_counter() - wall, children_seconds() - before
        assert (Path(folder) / "report.html").stat().st_size > 100_000, "no page was written"
    print(f"the open benchmark: {took:.1f} s ({cpu:.1f} s of processor time)")
    return verdict("half a minute against the open report", 30 / took, 1)


def main() -> int:
    return bootstrap() + whole_report() + open_report()
