"""Core-hours of the paper: every method of the matrix at the datasets' sizes, on generated features.

One draw per dataset and dimension at two shot counts. Epochs, and betas of a search, cost the same each, so that only
some are run and all are counted at their price, as `kshot plan` does it. What is measured is kept in a file; sizes that
are not there yet are priced by the growth through those that are. So it can be run in pieces:

    python -m benchmarks.paper --dataset DTD --dim 512 --measured build/paper.json
"""

import argparse
import heapq
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kshot.bench.costs import CellSize, Timing, cell_size, product_peak, seconds_weights
from kshot.bench.work import Sizes, find_work, strata_of

from benchmarks.data import data, noisy
from benchmarks.measure import peak_gigabytes
from benchmarks.timing import all_turns
from kshot.bench.cell import run_cell, run_method
from kshot.bench.records import Records
from kshot.bench.study import Cell, MethodSpec, Study, load_study
from kshot.data.store import Store
from kshot.data.stratum import Prior, Stratum
from kshot.methods import registry
from kshot.methods.shared_work import SharedWork
from kshot.paper.reproduce import arms
from kshot.solvers.rows import frozen
from kshot.types import Labelled

MATRIX, CELL_ITSELF, PEAK, MEMORY = "paper", "cell itself", "peak", "gigabytes"
DEAR = ("hoso", "clap", "lpp", "tip_adapter_test")
# Twice the bytes, half the speed.
FLOAT64 = 2.0
FEWEST_SIZES = 4
# With this spread a search of Tip-Adapter leaves 16 % of the classes as contenders; CLIP's features of Food-101, Cars
# and Aircraft leave 7, 12 and 33 %.
SPREAD = 1.0

Costs = dict[str, dict[str, float]]


def measured_cell(size: Sizes, shots: int, specs: Sequence[MethodSpec]) -> dict[str, float]:
    """Processor seconds of every method and of the cell around them, and the speed of a product just then."""
    drawn = noisy(data(size.classes, -(-size.n_pool // size.classes), size.dim, size.n_test), SPREAD)
    whole = (drawn.X, drawn.y), (drawn.queries, drawn.labels)
    parts = [Labelled(frozen(rows), frozen(labels)) for rows, labels in whole]
    ids = [tuple(map(str, range(len(part.y)))) for part in parts]
    stratum = Stratum("", "", parts[0], ids[0], parts[1], ids[1], size.classes, True, 100.0, {})
    prior = Prior(frozen(drawn.text), 10.0, "")
    cell = Cell("generated", "generated", "generated", shots, 0)
    # The draw's order is kept from cell to cell.
    stratum.episode(shots, 0, prior)
    found = {PEAK: product_peak()}
    start = time.process_time()
    run_cell(cell, [], stratum, prior)
    found[CELL_ITSELF] = time.process_time() - start
    episode, work = stratum.episode(shots, 0, prior), SharedWork()

    def seconds_of(spec: MethodSpec) -> float:
        start = time.process_time()
        record = run_method(cell, spec, episode, stratum, prior, keep_answers=True, work=work)
        assert record.status == "ok", record.reason
        return time.process_time() - start

    seconds_of(MethodSpec("zero_shot", "zero_shot"))
    for spec in specs:
        seconds = all_turns(spec, seconds_of)
        assert seconds is not None
        found[spec.name] = seconds
    return found


def measure(datasets: Sequence[str], dims: Sequence[int], file: Path, only: Sequence[str]) -> Costs:
    """What the file lacks of these sizes."""
    from threadpoolctl import threadpool_limits

    kept: Costs = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    study = load_study(MATRIX)
    sizes = {(name, size.dim): size for (name, _), size in catalogued(study).items()}
    with threadpool_limits(1):
        for (name, dim), size in sizes.items():
            if name not in datasets or dim not in dims:
                continue
            for shots in two_shot_counts(study, size):
                key = f"{name}/{dim}/{shots}"
                lacking = [spec for spec in study.grids[0].methods if spec.name not in kept.get(key, {})]
                wanted = [spec for spec in lacking if not only or spec.name in only]
                if wanted:
                    kept[key] = kept.get(key, {}) | measured_cell(size, shots, wanted)
                    kept[key][MEMORY] = max(peak_gigabytes(), kept[key].get(MEMORY, 0.0))
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
                    print(f"measured {key}", flush=True)
    return kept


def catalogued(study: Study) -> dict[tuple[str, str], Sizes]:
    return strata_of(study, Store(Path("no features stored")), must_be_stored=False)


def two_shot_counts(study: Study, size: Sizes) -> tuple[int, int]:
    """Two shots, which every method accepts, and as many as the pool allows."""
    allowed = [shots for shots in study.grids[0].shots if not size.drops(shots, study.least_residue)]
    return 2, allowed[-1]


def sizes_measured(costs: Costs) -> dict[str, CellSize]:
    sizes = {(name, size.dim): size for (name, _), size in catalogued(load_study(MATRIX)).items()}
    cut = {key: key.split("/") for key in costs}
    return {key: cell_size(sizes[name, int(dim)], int(shots)) for key, (name, dim, shots) in cut.items()}


def price(costs: Costs, study: Study) -> dict[Cell, dict[str, float]]:
    """Seconds of every cell by method, of those methods that were measured at enough sizes. Views add no batches to a
    trained head and are not counted."""
    places = sizes_measured(costs)
    known: dict[str, dict[CellSize, float]] = defaultdict(dict)
    for key, seconds in costs.items():
        for method, value in seconds.items():
            known[method][places[key]] = value
    weights = {
        method: seconds_weights([Timing(size, value) for size, value in sizes.items()])
        for method, sizes in known.items()
        if len(sizes) >= FEWEST_SIZES
    }
    made = {name: registry.create(spec.use, **spec.params) for name, spec in study.methods().items()}
    strata, found = catalogued(study), {}
    for cell, specs in study.cells().items():
        stratum = strata[cell.dataset, cell.backbone]
        if not stratum.drops(cell.shots, study.least_residue):
            names = [spec.name for spec in specs if cell.shots >= made[spec.name].info.min_shots]
            size = cell_size(stratum, cell.shots)
            for name in (CELL_ITSELF, *(name for name in names if name in weights)):
                if size not in known[name]:
                    known[name][size] = float(weights[name] @ size.terms())
            found[cell] = {name: known[name][size] for name in (CELL_ITSELF, *names) if name in weights}
    return found


def show_matrix(costs: Costs, study: Study, cells: dict[Cell, dict[str, float]]) -> None:
    hours: dict[tuple[str, str], float] = defaultdict(float)
    for cell, methods in cells.items():
        for method, seconds in methods.items():
            hours[cell.dataset, method] += seconds / 3600
    datasets = study.grids[0].datasets
    wanted = sum(len(two_shot_counts(study, size)) for size in catalogued(study).values())
    print(f"core-hours of {len(cells):,} cells, from {len(costs)} sizes (strata and two shot counts: {wanted})")
    print(f"{'':18}" + "".join(f"{name[:9]:>10}" for name in (*datasets, "all")))
    names = [*(spec.name for spec in study.grids[0].methods), CELL_ITSELF]
    rows = {method: [hours[name, method] for name in datasets] for method in names}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    for method, row in rows.items():
        print(f"{method:18}" + "".join(f"{value:10.3f}" for value in (*row, sum(row))))


def show_arms(costs: Costs) -> None:
    for arm in arms()[1:]:
        study = load_study(arm)
        cells = price(costs, study)
        hours = sum(sum(seconds.values()) for seconds in cells.values()) / 3600
        absent = sorted(set(study.methods()) - set().union(*cells.values()))
        factor = FLOAT64 if study.dtype == "float64" else 1
        print(f"arm {arm}: {factor * hours:.2f} core-hours{' without ' + ', '.join(absent) if absent else ''}")


def show_schedule(study: Study, cells: dict[Cell, dict[str, float]]) -> None:
    """What so many workers would be busy, each taking the next batch when it is free."""
    with tempfile.TemporaryDirectory() as folder:
        nothing = Records(Path(folder) / "records")
        work = find_work(study, Store(Path(folder)), nothing, must_be_stored=False)
    batches = [sum(sum(cells[cell].values()) for cell in batch.cells) for batch in work.batches()]
    for workers in (2, 16):
        free = [0.0] * workers
        for seconds in batches:
            heapq.heapreplace(free, free[0] + seconds)
        busy = sum(batches) / workers / max(free)
        print(f"{workers} workers: {max(free) / 3600:.2f} hours, busy {busy:.1%} of them, {len(batches)} batches")


def product_operations(method: str, size: CellSize) -> float:
    """Multiplications and additions of the matrix products that a dear method needs, prediction included."""
    c, n, d, rows = size.classes, size.n_test, size.dim, size.rows
    taught, predict = size.classes * (size.shots - 1), 2.0 * n * c * d
    # With few shots the linear heads train in the space that shots and text span.
    inside = min(d, rows + c)
    if method == "clap":
        return predict + 300 * 4.0 * min(256, rows) * max(1, rows // 256) * c * inside
    if method == "lpp":
        return predict + 300 * 4.0 * rows * c * inside
    if method == "hoso":
        return predict + 300 * min(256, taught) * max(1, taught // 256) * (4.0 * c * d + 2.5 * d * d)
    return predict + 2 * 2.0 * n * rows * d


def show_peak(costs: Costs) -> None:
    """Of the seconds measured, how many the matrix products alone would take at the speed they had just then."""
    places = sizes_measured(costs)
    for method in DEAR:
        here = [key for key in costs if method in costs[key]]
        taken = sum(costs[key][method] for key in here)
        floor = sum(product_operations(method, places[key]) / costs[key][PEAK] for key in here)
        if here:
            print(f"{method}: {floor / taken:.0%} of its time is matrix products at their peak")
    speeds = sorted(found[PEAK] / 1e9 for found in costs.values())
    print(f"peak of a product: {speeds[0]:.0f} to {speeds[-1]:.0f} billion operations a second")
    print(f"largest process, generating the features included: {max(c[MEMORY] for c in costs.values()):.2f} GB")


def main() -> int:
    study = load_study(MATRIX)
    dims = sorted({size.dim for size in catalogued(study).values()})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", action="append", choices=study.grids[0].datasets)
    parser.add_argument("--dim", action="append", type=int, choices=dims)
    parser.add_argument("--method", action="append", choices=study.methods())
    parser.add_argument("--measured", type=Path, default=Path("build/paper.json"), help="Where it is kept.")
    asked = parser.parse_args()
    datasets = asked.dataset or list(study.grids[0].datasets)
    costs = measure(datasets, asked.dim or dims, asked.measured, asked.method or [])
    if len(costs) < FEWEST_SIZES:
        print(f"{len(costs)} sizes measured; from {FEWEST_SIZES} on the matrix is priced.")
        return 0
    cells = price(costs, study)
    show_matrix(costs, study, cells)
    show_peak(costs)
    show_schedule(study, cells)
    show_arms(costs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
