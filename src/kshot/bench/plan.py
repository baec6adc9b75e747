"""Forecast of a run's time, disk and memory, from seconds that this machine recorded or from a table in kshot."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kshot.bench.costs import (
    CELL_ITSELF,
    CellSize,
    Costs,
    TimedMethod,
    cell_size,
    earlier_costs,
    kept_costs,
    seconds_weights,
    views_of,
)
from kshot.bench.work import Work
from kshot.methods import registry

# A method that was recorded at so many sizes needs no table.
ENOUGH_SIZES = 5
FORECAST_BASIS = (
    "Processor time: from what this machine recorded beside this folder, else from a table of timings scaled by this "
    "machine's speed of matrix products. The table ends at 250 classes; larger cells are extrapolated."
)
# A worker loads its modules once.
SECONDS_TO_START = 1.0
BYTES_OF_MODULES = 150_000_000
BYTES_PER_FILE = 14_000
BYTES_PER_RECORD = 500
# Measured over the paper's sizes.
ANSWER_BYTES_PER_PICTURE = 6


@dataclass(frozen=True, slots=True)
class Forecast:
    """Processor seconds and bytes on disk for the missing cells, and bytes in memory of a worker at its largest;
    `unknown` methods have no timings and are not counted."""

    cpu_seconds: float
    disk_bytes: int
    memory_bytes: int
    unknown: tuple[str, ...] = ()


def forecast(works: Sequence[Work], around: Iterable[Path] = ()) -> list[Forecast]:
    """One forecast for each work; seconds of the records folders `around` count if this machine wrote them."""
    folders, table = list(around), kept_costs()
    return [_forecast(work, folders, table) for work in works]


def _forecast(work: Work, folders: Sequence[Path], table: Costs) -> Forecast:
    needed, dtype = _needed(work), work.study.dtype
    recorded = earlier_costs(folders, work.strata, dtype)
    enough = {subject: measured for subject, measured in recorded.items() if len(measured) >= ENOUGH_SIZES}
    known = _of_table(work, {subject for subject, _ in needed}, table) | enough
    unknown = sorted({subject.method for subject, _ in needed} - {subject.method for subject in known})
    seconds = SECONDS_TO_START + _seconds(needed, known) if work.missing else 0.0
    largest = max((worker_bytes(size, dtype) for _, size in needed), default=0)
    return Forecast(seconds, _disk(work), largest, tuple(unknown))


def _of_table(work: Work, wanted: Iterable[TimedMethod], table: Costs) -> Costs:
    """The table under the study's names. A method with parameters that were not timed is priced like its defaults, and
    another number of views like the nearest that was timed."""
    timed_names = {name for name, _ in table}
    uses = {CELL_ITSELF: CELL_ITSELF}
    for spec in work.study.methods().values():
        uses[spec.name] = spec.recipe if spec.recipe in timed_names else spec.use
    # Twice the bytes, half the speed.
    factor = np.dtype(work.study.dtype).itemsize / 4
    found: Costs = {}
    for subject in wanted:
        timed = [other for other in table if other.method == uses[subject.method]]
        if timed:
            nearest = min(timed, key=lambda other: abs(other.views - subject.views))
            found[subject] = [m._replace(seconds=factor * m.seconds) for m in table[nearest]]
    return found


def worker_bytes(size: CellSize, dtype: str) -> int:
    """Of the dearest moment of a cell: the stratum, what is left of its pool and its unit rows, unit test pictures and
    their scores three times, the shots in a trained head's arrays and its weights."""
    pool, n, c, rows = size.n_pool, size.n_test, size.classes, size.rows
    numbers = size.dim * (3 * pool + 2 * n + 4 * rows + 8 * c) + 3 * n * c
    return BYTES_OF_MODULES + np.dtype(dtype).itemsize * numbers


def seconds_left(work: Work, folder: Path) -> float | None:
    """Processor seconds by the run's own records; None while they lack a method or come from another machine."""
    needed, known = _needed(work), earlier_costs([folder], work.strata, work.study.dtype)
    methods = {subject for subject, _ in needed if subject.method != CELL_ITSELF}
    return _seconds(needed, known) if methods <= known.keys() else None


def _needed(work: Work) -> Counter[tuple[TimedMethod, CellSize]]:
    """The number of fits of each method, and of cells, by size; without fits below the shots that a method needs."""
    least = {name: registry.info(spec.use, spec.params).min_shots for name, spec in work.study.methods().items()}
    found: Counter[tuple[TimedMethod, CellSize]] = Counter()
    for cell, specs in work.missing.items():
        size = work.strata[cell.dataset, cell.backbone]
        found[TimedMethod(CELL_ITSELF, views_of(specs)), cell_size(size, cell.shots, views_of(specs))] += 1
        for spec in specs:
            if cell.shots >= least[spec.name]:
                views = views_of([spec])
                found[TimedMethod(spec.name, views), cell_size(size, cell.shots, views)] += 1
    return found


def _seconds(needed: Mapping[tuple[TimedMethod, CellSize], int], known: Costs) -> float:
    weights = {subject: seconds_weights(measured) for subject, measured in known.items() if measured}
    asked = ((weights[subject], size, times) for (subject, size), times in needed.items() if subject in weights)
    return sum((times * float(own @ size.terms()) for own, size, times in asked), start=0.0)


def _disk(work: Work) -> int:
    found = 0
    for cell, specs in work.missing.items():
        n_test = work.strata[cell.dataset, cell.backbone].n_test
        answers = ANSWER_BYTES_PER_PICTURE * n_test if work.study.answers else 0
        found += BYTES_PER_FILE + len(specs) * (BYTES_PER_RECORD + n_test // 8 + answers)
    return found
