"""Statistics that `rules.toml` names: of a column of cells, of several figures, of pairs, and of formulas alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import SupportsFloat, TypeAlias

import numpy as np
from jaxtyping import Float, Int, Shaped

from kshot.paper.claims import Claim
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.correlation import rank_correlation, spearman
from kshot.stats.coverage import matched_design, simulate_coverage
from kshot.theory.blend_error import dominates_mean
from kshot.theory.sampling import isotropic_standard_error
from kshot.types import Array

TRIALS = 4_000
FAR_BELOW = -1.0
PROBES_AND_GDA = ("clap", "lpp", "gda_alpha1", "gda_alpha_loo")
NOT_KNOWN = Estimate(float("nan"), None, None, 0, 0)


@dataclass(frozen=True)
class Slice:
    """A claim's rows where its value is known; `other` is the column it is compared with."""

    values: Float[Array, " n"]
    other: Float[Array, " n"]
    dataset: Shaped[Array, " n"]
    backbone: Shaped[Array, " n"]
    shots: Int[Array, " n"]
    seed: Int[Array, " n"]

    def per(self, *axes: str) -> list[float]:
        """Means over the cells that agree in these axes."""
        groups: dict[tuple, list[float]] = {}
        for key, value in zip(zip(*(getattr(self, a).tolist() for a in axes), strict=True), self.values, strict=True):
            groups.setdefault(key, []).append(value)
        return [float(np.mean(group)) for group in groups.values()]


def without_interval(value: SupportsFloat, n: int = 0) -> Estimate:
    """A figure without an interval."""
    return Estimate(float(value), None, None, n, 0)


def _seed_spread(cells: Slice) -> Estimate:
    """SD over seeds of the mean over shots."""
    by_seed = cells.per("seed")
    return without_interval(np.std(by_seed, ddof=1), len(cells.values)) if len(by_seed) > 1 else NOT_KNOWN


def _coverage(kind: str) -> Callable[[Slice], Estimate]:
    def simulated(cells: Slice) -> Estimate:
        coverage = simulate_coverage(matched_design(cells.values, cells.dataset), TRIALS)
        return without_interval(100 * getattr(coverage, kind), coverage.trials)

    return simulated


def _shrink(cells: Slice) -> Estimate:
    """Standard error from resampling datasets over that from independent cells."""
    error = cluster_mean(cells.values, cells.dataset).error
    if error is None:
        return NOT_KNOWN
    return without_interval(error / (cells.values.std(ddof=1) / np.sqrt(len(cells.values))), len(cells.values))


def _of_values(by: Callable[[Float[Array, " n"]], SupportsFloat]) -> Callable[[Slice], Estimate]:
    return lambda cells: without_interval(by(cells.values), len(cells.values))


def _of_means(by: Callable[[list[float]], SupportsFloat], *axes: str) -> Callable[[Slice], Estimate]:
    """A number of the means over cells that agree in these axes."""
    return lambda cells: without_interval(by(cells.per(*axes)), len(cells.values))


OF_CELLS: Mapping[str, Callable[[Slice], Estimate]] = {
    "mean": lambda cells: cluster_mean(cells.values, cells.dataset),
    "mean of column means": _of_means(np.mean, "shots"),
    "largest |value|": _of_values(lambda values: np.abs(values).max()),
    "mean |value|": lambda cells: cluster_mean(np.abs(cells.values), cells.dataset),
    "sum": _of_values(np.sum),
    "sum over strata": _of_means(sum, "dataset", "backbone"),
    "sum over datasets": _of_means(sum, "dataset"),
    "orders of magnitude": _of_values(lambda values: np.log10(values.max() / values.min())),
    "cells": _of_values(len),
    "strata": _of_means(len, "dataset", "backbone"),
    "datasets": _of_means(len, "dataset"),
    "Spearman": lambda cells: spearman(cells.values, cells.other, cells.dataset),
    "mean |difference|": lambda cells: cluster_mean(np.abs(cells.values - cells.other), cells.dataset),
    "seed SD": _seed_spread,
    "percentile coverage": _coverage("percentile"),
    "Student-t coverage": _coverage("student_t"),
    "cluster over cell error": _shrink,
}


Figures: TypeAlias = Mapping[tuple[str, ...], Estimate]


def _count(true: Callable[[Estimate], bool]) -> Callable[[Figures], Estimate]:
    return lambda figures: without_interval(sum(map(true, figures.values())), len(figures))


def _reduced(by: Callable[[Float[Array, " n"]], float]) -> Callable[[Figures], Estimate]:
    return lambda figures: without_interval(by(np.array([f.mean for f in figures.values()])), len(figures))


def _largest_exception(values: Float[Array, " n"]) -> float:
    below = np.abs(values[values <= 0])
    return below.max() if len(below) else 0.0


def _rows(figures: Figures) -> dict[tuple[str, ...], dict[str, float]]:
    """Figures whose labels differ in the last word only, side by side."""
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for label, figure in figures.items():
        rows.setdefault(label[:-1], {})[label[-1]] = figure.mean
    return rows


def _inside_band(figures: Figures) -> Estimate:
    rows = _rows(figures).values()
    return without_interval(sum(row["band_low"] <= row["zs_ensemble"] <= row["band_high"] for row in rows), len(rows))


def _led_by_probe(figures: Figures) -> Estimate:
    rows = [{m: v for m, v in row.items() if m != "oracle_lambda"} for row in _rows(figures).values()]
    return without_interval(sum(max(row, key=lambda m: row[m]) in PROBES_AND_GDA for row in rows), len(rows))


def _gap_closed(figures: Figures) -> Estimate:
    """Mean over shots of (LOO − fixed) / (validation − fixed)."""
    rows = _rows(figures).values()
    fixed, free, tuned = (np.array([row[f"gda_alpha{kind}"] for row in rows]) for kind in ("1", "_loo", "_val"))
    return without_interval(np.mean((free - fixed) / (tuned - fixed)), len(rows))


OF_FIGURES: Mapping[str, Callable[[Figures], Estimate]] = {
    "min": _reduced(np.min),
    "max": _reduced(np.max),
    "mean in per cent": _reduced(lambda values: 100 * values.mean()),
    "median": _reduced(np.median),
    "range": _reduced(np.ptp),
    "negative": _reduced(lambda values: -values[0]),
    "largest |value|": _reduced(lambda values: np.abs(values).max()),
    "largest |value| not above zero": _reduced(_largest_exception),
    "largest factor from one": _reduced(lambda values: np.maximum(values, 1 / values).max()),
    "count above zero": _count(lambda figure: figure.mean > 0),
    "count not above zero": _count(lambda figure: figure.mean <= 0),
    "count below zero": _count(lambda figure: figure.mean < 0),
    "count far below zero": _count(lambda figure: figure.mean < FAR_BELOW),
    "count resolved": _count(lambda figure: figure.excludes_zero),
    "count resolved above zero": _count(lambda figure: figure.excludes_zero and figure.mean > 0),
    "count inside the band": _inside_band,
    "count led by a probe or GDA": _led_by_probe,
    "part of the gap closed": _gap_closed,
}
OF_PAIRS: Mapping[str, Callable[[Float[Array, " n"], Float[Array, " n"]], float]] = {
    "median of quotients": lambda first, second: float(np.median(first / second)),
    "quotient": lambda first, second: float(first[0] / second[0]),
    "per cent of |value|": lambda first, second: float(100 * first[0] / abs(second[0])),
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
