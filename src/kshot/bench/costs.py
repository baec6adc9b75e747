"""What a method costs: seconds measured at some sizes, and how they grow to others."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kshot.bench.records import Records, load_table
from kshot.bench.run import this_machine
from kshot.bench.work import Sizes
from kshot.errors import KshotError
from kshot.types import Array


@dataclass(frozen=True, slots=True)
class CellSize:
    """What a method's seconds depend on; `views` is the number of augmented views of each shot, `n_pool` counts the
    pictures that shots are drawn from."""

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
        """What a head of these sizes may have to do; seconds are a sum of such terms, none of them negative.

        A constant; rows, and products of passes over the shots, in all dimensions or in those that shots and text span;
        their covariance and its inverse; rows and scores of the test pictures; affinities of test pictures and shots;
        rows and scores of the pool.
        """
        rows, n, c, d, pool = self.rows, self.n_test, self.classes, self.dim, self.n_pool
        passes = [rows * d, rows * c * d, rows * c * min(d, rows + c)]
        scored = [n * d, n * c * d, n * rows, n * rows * d, pool * d, pool * c * d]
        return np.array([1, *passes, rows * d**2, d**3, *scored], float)

    def cut(self, products: float) -> "CellSize":
        """The same with so many fewer classes, and test pictures, that a pass takes at most so many products."""
        share = min(1.0, (products / self.products) ** 0.5)
        classes = max(2, round(self.classes * share))
        kept = classes / self.classes
        n_test, n_pool = max(classes, round(self.n_test * kept)), round(self.n_pool * kept)
        return replace(self, classes=classes, n_test=n_test, n_pool=n_pool)


def cell_size(size: Sizes, shots: int, views: int = 0) -> CellSize:
    return CellSize(size.classes, shots, size.dim, size.n_test, views, size.n_pool)


class Subject(NamedTuple):
    """Whose seconds: a method, with so many augmented views of each shot."""

    method: str
    views: int


class Measured(NamedTuple):
    """Seconds at one size."""

    problem: CellSize
    seconds: float


Costs = dict[Subject, list[Measured]]


@dataclass(frozen=True)
class Growth:
    """seconds = weights · terms, none of the weights negative."""

    weights: Float[Array, " terms"]

    def at(self, problem: CellSize) -> float:
        return float(self.weights @ problem.terms())


def grow(measured: Sequence[Measured]) -> Growth:
    """The growth with the smallest relative errors at what was measured."""
    from scipy.optimize import nnls

    terms = np.array([m.problem.terms() / m.seconds for m in measured])
    # Terms differ by twelve orders of magnitude; one that is nowhere there says nothing.
    scale = terms.max(axis=0)
    scale[scale == 0] = np.inf
    return Growth(nnls(terms / scale, np.ones(len(terms)))[0] / scale)


def earlier_costs(folders: Iterable[Path], strata: Mapping[tuple[str, str], Sizes], dtype: str) -> Costs:
    """Medians over the draws of what records of this machine took, for the strata whose sizes are known."""
    found: Costs = {}
    for folder in folders:
        for dataset, backbone, shots, method, views, seconds in _recorded(folder, dtype):
            size = strata.get((dataset, backbone))
            if size is not None and seconds > 0:
                count = json.loads(views).get("count", 0)
                measured = Measured(cell_size(size, shots, count), seconds)
                found.setdefault(Subject(method, count), []).append(measured)
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
