"""What runs will take, before they run: from what this machine recorded earlier, and from methods timed now."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kshot.bench.costs import CellSize, Costs, Subject, cell_size, earlier_costs, grow
from kshot.bench.study import MethodSpec
from kshot.bench.timing import CELL_ITSELF, probe_sizes, time_methods, views_of
from kshot.bench.work import Work
from kshot.methods import registry

# A method that was recorded at so many sizes is not timed again.
ENOUGH_SIZES = 5
FORECAST_BASIS = (
    "Processor time: from what this machine recorded beside this folder, and from methods timed just now on cells of "
    "at most some 250 classes, trained ones for a few of their epochs. Larger cells are extrapolated."
)
# A worker loads its modules once.
SECONDS_TO_START = 1.0
BYTES_OF_MODULES = 150_000_000
BYTES_PER_FILE = 14_000
BYTES_PER_RECORD = 500
# Measured over the paper's sizes.
ANSWER_BYTES_PER_PICTURE = 4


@dataclass(frozen=True, slots=True)
class Forecast:
    """Processor seconds and bytes on disk for the missing cells, and bytes in memory of a worker at its largest."""

    cpu_seconds: float
    disk_bytes: int
    memory_bytes: int


def forecast(works: Sequence[Work], around: Iterable[Path] = ()) -> list[Forecast]:
    """One for each work. `around` are records folders, whose seconds count where this machine wrote them; what several
    works need is timed once."""
    folders = list(around)
    found: dict[int, Forecast] = {}
    for dtype in {work.study.dtype: None for work in works}:
        alike = {number: work for number, work in enumerate(works) if work.study.dtype == dtype}
        needed = {number: _needed(work) for number, work in alike.items()}
        strata = {stratum: sizes for work in alike.values() for stratum, sizes in work.strata.items()}
        known = earlier_costs(folders, strata, dtype)
        problems = [problem for counts in needed.values() for _, problem in counts]
        specs = _unknown(alike.values(), known)
        for subject, measured in time_methods(specs, probe_sizes(problems), dtype).items():
            known.setdefault(subject, []).extend(measured)
        for number, work in alike.items():
            seconds = SECONDS_TO_START + _seconds(needed[number], known) if work.missing else 0.0
            largest = max((worker_bytes(size, dtype) for _, size in needed[number]), default=0)
            found[number] = Forecast(seconds, _disk(work), largest)
    return [found[number] for number in range(len(works))]


def worker_bytes(size: CellSize, dtype: str) -> int:
    """Of the dearest moment of a cell: the stratum, what is left of its pool and its unit rows, unit test pictures and
    their scores three times, the shots in a trained head's arrays and its weights."""
    pool, n, c, rows = size.n_pool, size.n_test, size.classes, size.rows
    numbers = size.dim * (3 * pool + 2 * n + 4 * rows + 8 * c) + 3 * n * c
    return BYTES_OF_MODULES + np.dtype(dtype).itemsize * numbers


def seconds_left(work: Work, folder: Path) -> float | None:
    """Processor seconds by the run's own records; None while they lack a method, or a machine wrote them that is not
    this one."""
    needed, known = _needed(work), earlier_costs([folder], work.strata, work.study.dtype)
    methods = {subject for subject, _ in needed if subject.method != CELL_ITSELF}
    return _seconds(needed, known) if methods <= known.keys() else None


def _needed(work: Work) -> Counter[tuple[Subject, CellSize]]:
    """How often each method, and the cell itself, meets each size; not below the shots that a method needs."""
    least = {
        name: registry.create(spec.use, **spec.params).info.min_shots for name, spec in work.study.methods().items()
    }
    found: Counter[tuple[Subject, CellSize]] = Counter()
    for cell, specs in work.missing.items():
        size = work.strata[cell.dataset, cell.backbone]
        found[Subject(CELL_ITSELF, views_of(specs)), cell_size(size, cell.shots, views_of(specs))] += 1
        for spec in specs:
            if cell.shots >= least[spec.name]:
                views = views_of([spec])
                found[Subject(spec.name, views), cell_size(size, cell.shots, views)] += 1
    return found


def _unknown(works: Iterable[Work], known: Costs) -> list[MethodSpec]:
    """Methods to be timed."""
    specs = {
        Subject(spec.name, views_of([spec])): spec
        for work in works
        for missing in work.missing.values()
        for spec in missing
    }
    return [spec for subject, spec in specs.items() if len(known.get(subject, ())) < ENOUGH_SIZES]


def _seconds(needed: Mapping[tuple[Subject, CellSize], int], known: Costs) -> float:
    growth = {subject: grow(measured) for subject, measured in known.items() if measured}
    asked = ((growth[subject], problem, times) for (subject, problem), times in needed.items() if subject in growth)
    return sum((times * grown.at(problem) for grown, problem, times in asked), start=0.0)


def _disk(work: Work) -> int:
    found = 0
    for cell, specs in work.missing.items():
        n_test = work.strata[cell.dataset, cell.backbone].n_test
        answers = ANSWER_BYTES_PER_PICTURE * n_test if work.study.answers else 0
        found += BYTES_PER_FILE + len(specs) * (BYTES_PER_RECORD + n_test // 8 + answers)
    return found
