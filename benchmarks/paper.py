"""Core-hours of the paper: every method of the matrix at every dataset's size, on generated features.

One draw per dataset, dimension and two shot counts; what lies between these shot counts is taken to grow evenly. The
turns of a long loop (epochs, betas) cost the same, so only a part is run and the rest is counted at the price of that
part. What is measured is kept, so that the same command goes on where it was stopped:

    python -m benchmarks.paper --dataset DTD --measured build/paper.json
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.data import data
from benchmarks.measure import peak_gigabytes, product_peak
from kshot.bench.execution.cell import run_cell, run_method
from kshot.bench.sizes import Sizes, strata_of
from kshot.bench.study import Cell, MethodSpec, Study, load_study
from kshot.episodes.stratum import Prior, Stratum
from kshot.features.store import Store
from kshot.methods import registry
from kshot.methods.shared_work import SharedWork
from kshot.road import arms
from kshot.solvers.rows import frozen
from kshot.types import Labelled

MATRIX, CELL_ITSELF, PEAK, MEMORY = "paper", "cell itself", "peak", "gigabytes"
# Pictures outside the test split, as the datasets are distributed; 68 % of all where the rule splits.
POOLS = {
    "Aircraft": 6667,
    "Caltech101": 3060,
    "Cars": 8144,
    "DTD": 3760,
    "EuroSAT": 21600,
    "Flowers102": 1020,
    "Food101": 75750,
    "ImageNet": 34000,
    "Pets": 3680,
    "SUN397": 73949,
}
# The loop of a dear method, and how many turns it has.
LOOPS = {
    "clap": ("epochs", 300),
    "lpp": ("epochs", 300),
    "hoso": ("epochs", 300),
    "tip_adapter_test": ("beta_points", 200),
}
LEAST_SECONDS = 1.5
# Arms have methods that the matrix lacks; they are measured at one dimension and not with more classes than these.
ARM_METHODS, ARM_DIM, ARM_CLASSES = ("logistic_probe", "logistic_probe_test"), 768, 110
# Twice the bytes, half the speed.
FLOAT64 = 2.0

Costs = dict[str, dict[str, float]]


def product_operations(method: str, size: Sizes, shots: int) -> float:
    """Multiplications and additions of the matrix products that a dear method needs, prediction included."""
    c, n, rows = size.classes, size.n_test, size.classes * shots
    predict, taught = 2.0 * n * c * size.dim, size.classes * (shots - 1)
    # With few shots the linear heads train in the space that shots and text span.
    dim, turns = min(size.dim, rows + c), LOOPS[method][1]
    batches = min(256, rows) * max(1, rows // 256)
    if method == "clap":
        return predict + turns * 4.0 * batches * c * dim
    if method == "lpp":
        return predict + turns * 4.0 * rows * c * dim
    if method == "hoso":
        per_row = 4.0 * c * size.dim + 10.0 * size.dim**2 / 4
        return predict + turns * min(256, taught) * max(1, taught // 256) * per_row
    return 2.0 * n * rows * size.dim + predict


def measured_cell(size: Sizes, shots: int, pool: int, specs: Sequence[MethodSpec]) -> dict[str, float]:
    """Processor seconds of every method and of the cell around them, and the speed of a product just then."""
    drawn = data(size.classes, -(-pool // size.classes), size.dim, size.n_test)
    whole = (drawn.X, drawn.y), (drawn.queries, drawn.labels)
    parts = [Labelled(frozen(rows), frozen(labels)) for rows, labels in whole]
    ids = [tuple(map(str, range(len(part.y)))) for part in parts]
    stratum = Stratum("", "", parts[0], ids[0], parts[1], ids[1], size.classes, True, 100.0, {})
    prior = Prior(frozen(drawn.text), 10.0, "")
    cell = Cell("generated", "generated", "generated", shots, 0)
    found = {PEAK: product_peak()}
    start = time.process_time()
    run_cell(cell, [], stratum, prior)
    found[CELL_ITSELF] = time.process_time() - start
    episode, work = stratum.episode(shots, 0, prior.text), SharedWork()

    def once(spec: MethodSpec) -> float:
        start = time.process_time()
        record = run_method(cell, spec, episode, stratum, prior, keep_answers=True, work=work)
        assert record.status == "ok", record.reason
        return time.process_time() - start

    for spec in specs:
        found[spec.name] = whole_loop(spec, once) if spec.name in LOOPS else once(spec)
    return found


def whole_loop(spec: MethodSpec, once: Callable[[MethodSpec], float]) -> float:
    """Seconds of all turns, from those of two and of some more."""
    parameter, turns = LOOPS[spec.name]

    def seconds(some: int) -> float:
        return once(replace(spec, params={**spec.params, parameter: some}))

    first, more = min(seconds(2), seconds(2)), 2
    while True:
        more = min(2 * more, turns - 2)
        longer = seconds(2 + more) - first
        if longer > LEAST_SECONDS or more == turns - 2:
            return first + longer / more * (turns - 2)


def measure(wanted: Sequence[str], file: Path) -> Costs:
    """What the file lacks of these datasets."""
    from threadpoolctl import threadpool_limits

    kept: Costs = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    study = load_study(MATRIX)
    strata = catalogued(study)
    sizes = {(name, size.dim): size for (name, _), size in strata.items() if name in wanted}
    with threadpool_limits(1):
        for (name, dim), size in sizes.items():
            specs = list(study.grids[0].methods)
            if dim == ARM_DIM and size.classes <= ARM_CLASSES:
                specs += [MethodSpec(key, key) for key in ARM_METHODS]
            for shots in two_shot_counts(study, size):
                key = f"{name}/{dim}/{shots}"
                if key not in kept:
                    found = measured_cell(size, shots, POOLS[name], specs)
                    kept[key] = found | {MEMORY: peak_gigabytes()}
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


def price(costs: Costs, study: Study, factor: float = 1.0) -> dict[tuple[str, str], float]:
    """Seconds by dataset and method. An arm's split counts as the dataset's own, a dataset that was not measured as the
    one with most similar classes; views add rows to the batches' choice and no batches."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    least = {name: _least_shots(spec) for name, spec in study.methods().items()}
    strata = catalogued(study)
    known = sorted({key.split("/")[0] for key in costs})
    classes = {name: size.classes for (name, _), size in catalogued(load_study(MATRIX)).items()}
    for cell, specs in study.cells().items():
        size = strata[cell.dataset, cell.backbone]
        if size.drops(cell.shots, study.least_residue):
            continue
        plain = cell.dataset.removesuffix("-coop")
        like = plain if plain in known else min(known, key=lambda name: abs(classes[name] - size.classes))
        for name in (CELL_ITSELF, *(spec.name for spec in specs if cell.shots >= least[spec.name])):
            found[cell.dataset, name] += factor * _at(costs, like, size.dim, name, cell.shots)
    return found


def _least_shots(spec: MethodSpec) -> int:
    return registry.create(spec.use, **spec.params).info.min_shots


def _at(costs: Costs, dataset: str, dim: int, method: str, shots: int) -> float:
    """On the line through the two shot counts measured; NaN where the method was not."""
    points = {
        int(key.split("/")[2]): costs[key].get(method, float("nan"))
        for key in costs
        if key.startswith(f"{dataset}/{dim}/")
    }
    (few, low), (many, high) = sorted(points.items())
    return max(low * shots / few / 4, low + (high - low) * (shots - few) / (many - few))


def show_matrix(costs: Costs) -> None:
    study = load_study(MATRIX)
    study = replace(study, grids=tuple(replace(g, datasets=_complete(costs, study)) for g in study.grids))
    seconds = price(costs, study)
    datasets = study.grids[0].datasets
    methods = [*(spec.name for spec in study.grids[0].methods), CELL_ITSELF]
    print(f"core-hours of the matrix on {len(datasets)} of the paper's ten datasets")
    print(f"{'':18}" + "".join(f"{name[:9]:>10}" for name in (*datasets, "all")))
    for method in methods:
        row = [seconds.get((name, method), 0.0) / 3600 for name in datasets]
        print(f"{method:18}" + "".join(f"{hours:10.3f}" for hours in (*row, sum(row))))
    totals = [sum(seconds.get((name, method), 0.0) for method in methods) / 3600 for name in datasets]
    print(f"{'all':18}" + "".join(f"{hours:10.3f}" for hours in (*totals, sum(totals))))


def show_peak(costs: Costs) -> None:
    """Of the seconds measured, how many the matrix products alone would take at the speed they had just then."""
    strata = catalogued(load_study(MATRIX))
    sizes = {(name, size.dim): size for (name, _), size in strata.items()}
    for method in LOOPS:
        floor = taken = 0.0
        for key, found in costs.items():
            name, dim, shots = key.split("/")
            floor += product_operations(method, sizes[name, int(dim)], int(shots)) / found[PEAK]
            taken += found[method]
        print(f"{method}: {floor / taken:.0%} of its time is matrix products at their peak")
    speeds = sorted(found[PEAK] / 1e9 for found in costs.values())
    print(f"peak of a product: {speeds[0]:.0f} to {speeds[-1]:.0f} billion operations a second")
    print(f"largest process: {max(found[MEMORY] for found in costs.values()):.2f} GB")


def show_arms(costs: Costs) -> None:
    whole = set(POOLS) == set(_complete(costs, load_study(MATRIX)))
    for arm in arms()[1:] if whole else ():
        study = load_study(arm)
        seconds = price(costs, study, FLOAT64 if study.dtype == "float64" else 1.0)
        hours = sum(value for value in seconds.values() if value == value) / 3600
        absent = sorted({name for (dataset, name), value in seconds.items() if value != value})
        print(f"arm {arm}: {hours:.2f} core-hours{' without ' + ', '.join(absent) if absent else ''}")


def _complete(costs: Costs, study: Study) -> tuple[str, ...]:
    """Datasets that were measured at every dimension."""
    strata = catalogued(study)
    wanted = {
        name: {
            f"{name}/{size.dim}/{shots}"
            for (other, _), size in strata.items()
            if other == name
            for shots in two_shot_counts(study, size)
        }
        for name in POOLS
    }
    return tuple(name for name, keys in wanted.items() if keys <= costs.keys())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", action="append", choices=POOLS, help="Measure this one. Repeatable.")
    parser.add_argument("--measured", type=Path, default=Path("build/paper.json"), help="Where it is kept.")
    asked = parser.parse_args()
    costs = measure(asked.dataset or list(POOLS), asked.measured)
    show_matrix(costs)
    show_peak(costs)
    show_arms(costs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
