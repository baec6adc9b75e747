"""The cost of methods: processor seconds at measured sizes, extrapolated to other sizes."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kshot.bench.records import Records, load_table
from kshot.bench.run import this_machine
from kshot.bench.study import MethodSpec
from kshot.bench.work import Sizes
from kshot.errors import KshotError
from kshot.types import Array

# Written by `python -m benchmarks.seconds`.
TABLE = Path(__file__).with_name("seconds.json")
# The cell itself: loading, drawing, measuring its geometry, writing its file.
CELL_ITSELF = ""


@dataclass(frozen=True, slots=True)
class CellSize:
    """The sizes that a method's seconds depend on; `views` is the number of augmented views of each shot, `n_pool` the
    number of pictures that shots are drawn from."""

    classes: int
    shots: int
    dim: int
    n_test: int
    views: int = 0
    n_pool: int = 0

    @property
    def rows(self) -> int:
        return self.classes * self.shots * max(1, self.views)

    @property
    def products(self) -> int:
        """Multiplications of one pass over the shots."""
        return self.rows * self.classes * self.dim

    def terms(self) -> Float[Array, " terms"]:
        """Numbers of operations that a head may need at these sizes; its seconds are a weighted sum of them.

        A constant; rows, and products of passes over the shots, in all dimensions or in those that shots and text span;
        their covariance and its inverse; rows and scores of the test pictures; affinities of test pictures and shots;
        rows and scores of the pool.
        """
        rows, n, c, d, pool = self.rows, self.n_test, self.classes, self.dim, self.n_pool
        passes = [rows * d, rows * c * d, rows * c * min(d, rows + c)]
        scored = [n * d, n * c * d, n * rows, n * rows * d, pool * d, pool * c * d]
        return np.array([1, *passes, rows * d**2, d**3, *scored], float)


def cell_size(size: Sizes, shots: int, views: int = 0) -> CellSize:
    return CellSize(size.classes, shots, size.dim, size.n_test, views, size.n_pool)


class TimedMethod(NamedTuple):
    """A method and its number of augmented views of each shot: what seconds are kept for."""

    method: str
    views: int


class Timing(NamedTuple):
    """Seconds at one size."""

    problem: CellSize
    seconds: float


Costs = dict[TimedMethod, list[Timing]]


def seconds_weights(measured: Sequence[Timing]) -> Float[Array, " terms"]:
    """Weights of a size's terms, none negative, whose sum has the smallest relative errors at what was measured."""
    from scipy.optimize import nnls

    terms = np.array([m.problem.terms() / m.seconds for m in measured])
    # Terms differ by twelve orders of magnitude; a term that is zero at all sizes gets the weight zero.
    scale = terms.max(axis=0)
    scale[scale == 0] = np.inf
    return nnls(terms / scale, np.ones(len(terms)))[0] / scale


def product_peak() -> float:
    """Operations per second of a large float32 matrix product on one thread."""
    from threadpoolctl import threadpool_limits

    side, times = 1024, []
    A, B = np.random.default_rng(0).standard_normal((2, side, side), np.float32)
    out = np.empty_like(A)
    with threadpool_limits(1):
        for _ in range(6):
            start = time.process_time()
            np.matmul(A, B, out=out)
            times.append(time.process_time() - start)
    return 2 * side**3 / min(times)


def kept_costs() -> Costs:
    """The table that comes with kshot, scaled by this machine's speed of matrix products."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    slower = table["peak"] / product_peak()
    found: Costs = {}
    for method, views, classes, shots, dim, n_test, n_pool, seconds in table["rows"]:
        size = CellSize(classes, shots, dim, n_test, views, n_pool)
        found.setdefault(TimedMethod(method, views), []).append(Timing(size, seconds * slower))
    return found


def views_of(specs: Iterable[MethodSpec]) -> int:
    """The largest number of augmented views that any of the methods gets."""
    return max((spec.views.count for spec in specs if spec.views is not None), default=0)


def earlier_costs(folders: Iterable[Path], strata: Mapping[tuple[str, str], Sizes], dtype: str) -> Costs:
    """Median seconds over the draws in records that this machine wrote, for the strata whose sizes are known."""
    found: Costs = {}
    for folder in folders:
        for dataset, backbone, shots, method, views, seconds in _recorded(folder, dtype):
            size = strata.get((dataset, backbone))
            if size is not None and seconds > 0:
                count = json.loads(views).get("count", 0)
                measured = Timing(cell_size(size, shots, count), seconds)
                found.setdefault(TimedMethod(method, count), []).append(measured)
    return found


def _recorded(folder: Path, dtype: str) -> list[tuple]:
    if not _computed_here(folder):
        return []
    try:
        names = ("dataset", "backbone", "shots", "method", "views", "profile")
        table = load_table(folder, [*names, "status", "dtype", "fit_seconds", "score_seconds"])
    except KshotError:
        return []
    seconds: dict[tuple, list[float]] = {}
    for row in table.to_pylist():
        if row["status"] == "ok" and row["dtype"] == dtype:
            key = tuple(row[name] for name in names)
            seconds.setdefault(key, []).append(row["fit_seconds"] + row["score_seconds"])
    return [(*key[:-1], float(np.median(values))) for key, values in sorted(seconds.items())]


def _computed_here(folder: Path) -> bool:
    """Whether every run that wrote into the folder was on a machine like this one."""
    here = this_machine()
    try:
        runs = Records(folder).runs()
    except (OSError, ValueError):
        return False
    return bool(runs) and all({name: run.get(name) for name in here} == here for run in runs)
