"""Statistics that `rules.toml` names: of a column of cells, of several figures, of pairs, and of formulas alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import SupportsFloat, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from kshot.paper.claims import Claim
from kshot.stats.bootstrap import LEVEL as INTERVAL
from kshot.stats.bootstrap import Estimate, cluster_mean, critical_value
from kshot.stats.correlation import rank_correlation, spearman
from kshot.stats.coverage import matched_design, simulate_coverage
from kshot.theory.blend_error import dominates_mean
from kshot.theory.sampling import isotropic_standard_error
from kshot.types import Array

TRIALS = 4_000
FAR_BELOW = -1.0
PROBES_AND_GDA = ("clap", "lpp", "gda_alpha1", "gda_alpha_loo")
MEAN, MEAN_OF_COLUMNS = "mean", "mean of column means"


@dataclass(frozen=True)
class Weights:
    """How a figure is made of cells: Σ weight · column[row] over `parts`, one for each column (name, measure)."""

    arm: str
    parts: Mapping[tuple[str, str], tuple[Int[Array, " k"], Float[Array, " k"]]]


@dataclass(frozen=True)
class Figure:
    """A number, with what gives its interval over datasets; `error` is its standard error over datasets, `weights` say
    how a mean is made of cells."""

    value: float
    n: int = 0
    G: int = 0
    error: float | None = None
    estimated: Callable[[], Estimate] | None = None
    weights: Weights | None = field(default=None, repr=False, compare=False)

    @cached_property
    def estimate(self) -> Estimate:
        """The number with its interval over datasets, where it has one."""
        return Estimate(self.value, None, None, self.n, self.G) if self.estimated is None else self.estimated()

    @property
    def computed(self) -> bool:
        return bool(np.isfinite(self.value))

    @property
    def excludes_zero(self) -> bool:
        """Whether the Student-t interval over datasets excludes zero."""
        if self.error is None or self.G < 2:
            return False
        return abs(self.value) > critical_value(self.G - 1, INTERVAL) * self.error


NOT_COMPUTED = Figure(float("nan"))


@dataclass(frozen=True)
class Slice:
    """A claim's cells where its value is computed; `other` is the column it is compared with."""

    values: Float[Array, " n"]
    other: Float[Array, " n"]
    dataset: Int[Array, " n"]
    backbone: Int[Array, " n"]
    shots: Int[Array, " n"]
    seed: Int[Array, " n"]

    def groups(self, *axes: str) -> Int[Array, " n"]:
        """The number of each cell's group of cells that agree in these axes."""
        keys = np.stack([getattr(self, axis) for axis in axes], axis=1)
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)

    def per(self, *axes: str) -> Float[Array, " g"]:
        """Means over the cells that agree in these axes."""
        group = self.groups(*axes)
        return np.bincount(group, self.values) / np.bincount(group)

    def mean(self, values: Float[Array, " n"]) -> Figure:
        """Mean over cells; its error is that of drawing datasets, to first order in the draws of the bootstrap."""
        sizes = np.bincount(self.dataset)
        sums, sizes = np.bincount(self.dataset, values)[sizes > 0], sizes[sizes > 0]
        mean, G = sums.sum() / len(values), len(sizes)
        error = float(np.sqrt(((sums - mean * sizes) ** 2).sum()) / len(values)) if G > 1 else None
        return Figure(float(mean), len(values), G, error, lambda: cluster_mean(values, self.dataset))

    def figure(self, value: float) -> Figure:
        return Figure(value, len(self.values))


def cell_weights(kind: str, shots: Int[Array, " n"]) -> Float[Array, " n"]:
    """The weight of every cell in a mean over cells, or in the mean over K of such means."""
    if kind == MEAN:
        return np.full(len(shots), 1 / len(shots))
    group = np.unique(shots, return_inverse=True)[1].reshape(-1)
    return 1 / (np.bincount(group)[group] * (group.max() + 1))


def _seed_spread(cells: Slice) -> Figure:
    """SD over seeds of the mean over shots."""
    means = cells.per("seed")
    return cells.figure(float(means.std(ddof=1))) if len(means) > 1 else NOT_COMPUTED


def _coverage(kind: str) -> Callable[[Slice], Figure]:
    def simulated(cells: Slice) -> Figure:
        return Figure(
            100 * getattr(simulate_coverage(matched_design(cells.values, cells.dataset), TRIALS), kind), TRIALS
        )

    return simulated


def _shrink(cells: Slice) -> Figure:
    """Standard error from resampling datasets over that from independent cells."""
    error = cells.mean(cells.values).error
    return (
        NOT_COMPUTED
        if error is None
        else cells.figure(float(error / (cells.values.std() / np.sqrt(len(cells.seed) - 1))))
    )


def _of_values(by: Callable[[Array], SupportsFloat]) -> Callable[[Slice], Figure]:
    return lambda cells: cells.figure(float(by(cells.values)))


def _of_means(by: Callable[[Array], SupportsFloat], *axes: str) -> Callable[[Slice], Figure]:
    """A number of the means over cells that agree in these axes."""
    return lambda cells: cells.figure(float(by(cells.per(*axes))))


def _groups(*axes: str) -> Callable[[Slice], Figure]:
    return lambda cells: cells.figure(float(cells.groups(*axes).max() + 1))


def _spearman(cells: Slice) -> Figure:
    rho = rank_correlation(cells.values, cells.other)
    G = len(np.unique(cells.dataset))
    return Figure(rho, len(cells.values), G, None, lambda: spearman(cells.values, cells.other, cells.dataset))


OF_CELLS: Mapping[str, Callable[[Slice], Figure]] = {
    MEAN: lambda cells: cells.mean(cells.values),
    MEAN_OF_COLUMNS: _of_means(np.mean, "shots"),
    "largest |value|": _of_values(lambda values: np.abs(values).max()),
    "mean |value|": lambda cells: cells.mean(np.abs(cells.values)),
    "sum": _of_values(np.sum),
    "sum over strata": _of_means(np.sum, "dataset", "backbone"),
    "sum over datasets": _of_means(np.sum, "dataset"),
    "orders of magnitude": _of_values(lambda values: np.log10(values.max() / values.min())),
    "cells": _of_values(len),
    "strata": _groups("dataset", "backbone"),
    "datasets": _groups("dataset"),
    "Spearman": _spearman,
    "mean |difference|": lambda cells: cells.mean(np.abs(cells.values - cells.other)),
    "seed SD": _seed_spread,
    "percentile coverage": _coverage("percentile"),
    "Student-t coverage": _coverage("student_t"),
    "cluster over cell error": _shrink,
}


Figures: TypeAlias = Mapping[tuple[str, ...], Figure]


def values_of(figures: Figures) -> Float[Array, " k"]:
    return np.array([figure.value for figure in figures.values()])


def _count(true: Callable[[Figure], bool]) -> Callable[[Figures], Figure]:
    return lambda figures: Figure(float(sum(map(true, figures.values()))), len(figures))


def _reduced(by: Callable[[Array], SupportsFloat]) -> Callable[[Figures], Figure]:
    return lambda figures: Figure(float(by(values_of(figures))), len(figures))


def _rows(figures: Figures) -> list[dict[str, float]]:
    """Figures whose labels differ in the last word only, side by side."""
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for label, figure in figures.items():
        rows.setdefault(label[:-1], {})[label[-1]] = figure.value
    return list(rows.values())


def _counted(true: Callable[[dict[str, float]], bool]) -> Callable[[Figures], Figure]:
    return lambda figures: Figure(float(sum(map(true, _rows(figures)))), len(_rows(figures)))


def _inside_band(row: dict[str, float]) -> bool:
    return row["band_low"] <= row["zs_ensemble"] <= row["band_high"]


def _led_by_probe(row: dict[str, float]) -> bool:
    return max((m for m in row if m != "oracle_lambda"), key=lambda method: row[method]) in PROBES_AND_GDA


def _gap_closed(figures: Figures) -> Figure:
    """Mean over shots of (LOO − fixed) / (validation − fixed); NaN where there is no gap at some shot count."""
    fixed, free, tuned = (
        np.array([row[f"gda_alpha{kind}"] for row in _rows(figures)]) for kind in ("1", "_loo", "_val")
    )
    gap = np.where(tuned == fixed, np.nan, tuned - fixed)
    return Figure(float(((free - fixed) / gap).mean()), len(figures))


OF_FIGURES: Mapping[str, Callable[[Figures], Figure]] = {
    "min": _reduced(np.min),
    "max": _reduced(np.max),
    "mean in per cent": _reduced(lambda values: 100 * values.mean()),
    "median": _reduced(np.median),
    "range": _reduced(np.ptp),
    "negative": _reduced(lambda values: -values[0]),
    "largest |value|": _reduced(lambda values: np.abs(values).max()),
    "largest |value| not above zero": _reduced(lambda values: np.where(values <= 0, np.abs(values), 0).max()),
    "largest factor from one": _reduced(lambda values: np.maximum(values, 1 / values).max()),
    "count above zero": _count(lambda figure: figure.value > 0),
    "count not above zero": _count(lambda figure: figure.value <= 0),
    "count below zero": _count(lambda figure: figure.value < 0),
    "count far below zero": _count(lambda figure: figure.value < FAR_BELOW),
    "count resolved": _count(lambda figure: figure.excludes_zero),
    "count resolved above zero": _count(lambda figure: figure.excludes_zero and figure.value > 0),
    "count inside the band": _counted(_inside_band),
    "count led by a probe or GDA": _counted(_led_by_probe),
    "part of the gap closed": _gap_closed,
}
OF_PAIRS: Mapping[str, Callable[[Float[Array, " k"], Float[Array, " k"]], float]] = {
    "median of quotients": lambda first, second: float(np.median(first / second)),
    "quotient": lambda first, second: float(first[0] / second[0]),
    "per cent of |value|": lambda first, second: float(100 * first[0] / np.abs(second[0])),
    "rank correlation with |value|": lambda first, second: rank_correlation(first, np.abs(second)),
}


def _whole(claim: Claim, key: str) -> int:
    return int(claim.conditions[key].values[0])


def _standard_error(claim: Claim) -> float:
    ratio = float(claim.conditions["lambda"].values[0])
    return float(isotropic_standard_error(ratio, _whole(claim, "d"), _whole(claim, "K")))


def _least_dimension(claim: Claim) -> float:
    return float(next(d for d in range(1, 100) if dominates_mean(_whole(claim, "K"), d)))


FORMULAS: Mapping[str, Callable[[Claim], float]] = {
    "(d-2)/d": lambda claim: (_whole(claim, "d") - 2) / _whole(claim, "d"),
    "1/d": lambda claim: 1 / _whole(claim, "d"),
    "isotropic standard error": _standard_error,
    "least dimension of dominance": _least_dimension,
}
