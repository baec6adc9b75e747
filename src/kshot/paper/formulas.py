"""Statistics that `rules.toml` names: of a column of cells, of several figures, of pairs, and of formulas alone.

Every statistic is computed for all rows at once: row 0 is the records as they are, the others are resamples of the
draws (weights) or records with a planted shift (values).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsFloat, TypeAlias

import numpy as np
from jaxtyping import Float, Int, Shaped

from kshot.paper.claims import Claim
from kshot.stats.bootstrap import LEVEL as INTERVAL
from kshot.stats.bootstrap import Estimate, cluster_mean, critical_value
from kshot.stats.correlation import rank_correlation, rank_correlations, spearman, weighted_rank_correlation
from kshot.stats.coverage import matched_design, simulate_coverage
from kshot.theory.blend_error import dominates_mean
from kshot.theory.sampling import isotropic_standard_error
from kshot.types import Array

TRIALS = 4_000
FAR_BELOW = -1.0
MANY = 1_000
PROBES_AND_GDA = ("clap", "lpp", "gda_alpha1", "gda_alpha_loo")


@dataclass(frozen=True)
class Figure:
    """A number for every row; `error` is its standard error over datasets, `added` a variance that resampling draws
    does not show, `draws` the number of draws behind it (0: it has none)."""

    values: Float[Array, " R"]
    n: int = 0
    G: int = 0
    error: Float[Array, " E"] | None = None
    added: float = 0.0
    draws: int = 0
    estimated: Callable[[], Estimate] | None = None

    @cached_property
    def estimate(self) -> Estimate:
        """The number of row 0, with its interval over datasets where it has one."""
        if self.estimated is not None:
            return self.estimated()
        return Estimate(float(self.values[0]), None, None, self.n, self.G)

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.values[0]))

    @property
    def excludes_zero(self) -> Array:
        """Whether the Student-t interval over datasets excludes zero, row by row."""
        if self.error is None or self.G < 2:
            return np.zeros(len(self.values), bool)
        return np.abs(self.values) > critical_value(self.G - 1, INTERVAL) * self.error


NOT_KNOWN = Figure(np.full(1, np.nan))


@dataclass(frozen=True)
class Slice:
    """A claim's cells where its value is known; `other` is the column it is compared with. Values and weights have one
    row, or one for every resample."""

    values: Float[Array, "V n"]
    other: Float[Array, "O n"]
    weights: Float[Array, "W n"]
    dataset: Shaped[Array, " n"]
    backbone: Shaped[Array, " n"]
    shots: Int[Array, " n"]
    seed: Int[Array, " n"]

    def sums(self, values: Float[Array, "V n"], member: Float[Array, "n g"]) -> Float[Array, "R g"]:
        """Weighted sums of the values of each group."""
        if len(values) == 1:
            return self.weights @ (values[0][:, None] * member)
        return (self.weights * values) @ member

    def per(self, *axes: str) -> Float[Array, "R g"]:
        """Means over the cells that agree in these axes."""
        member = self._member(*axes)
        return self.sums(self.values, member) / (self.weights @ member)

    def _member(self, *axes: str) -> Float[Array, "n g"]:
        code = np.zeros(len(self.seed), int)
        for axis in axes:
            values = getattr(self, axis)
            code = code * (values.max() + 2) + values
        group = np.unique(code, return_inverse=True)[1].reshape(-1)
        member = np.zeros((len(group), group.max() + 1))
        member[np.arange(len(group)), group] = 1
        return member

    def mean(self, values: Float[Array, "V n"]) -> Figure:
        """Mean over cells; its error is that of drawing datasets, to first order in the draws of the bootstrap."""
        member = self._member("dataset")
        sums, sizes = self.sums(values, member), self.weights @ member
        total = sizes.sum(axis=1)
        mean = sums.sum(axis=1) / total
        error = np.sqrt(((sums - mean[:, None] * sizes) ** 2).sum(axis=1)) / total
        return Figure(
            mean,
            values.shape[1],
            member.shape[1],
            error if member.shape[1] > 1 else None,
            draws=self.draws,
            estimated=lambda: cluster_mean(values[0], self.dataset),
        )

    @property
    def draws(self) -> int:
        """Draws behind the values; many where their noise is planted as it is, not resampled from a few."""
        return len(np.unique(self.seed[self.seed >= 0])) or (MANY if len(self.values) > 1 else 0)

    def figure(self, values: Array, added: float = 0.0) -> Figure:
        return Figure(values, self.values.shape[1], added=added, draws=self.draws)


def _seed_spread(cells: Slice) -> Figure:
    """SD over seeds of the mean over shots."""
    member = cells._member("seed")
    if member.shape[1] < 2:
        return NOT_KNOWN
    sizes = cells.weights @ member
    means = cells.sums(cells.values, member) / np.where(sizes > 0, sizes, 1)
    share = sizes / sizes.sum(axis=1, keepdims=True)
    centred = means - (share * means).sum(axis=1, keepdims=True)
    correction = member.shape[1] / (member.shape[1] - 1)
    return cells.figure(np.sqrt(correction * (share * centred**2).sum(axis=1)))


def _coverage(kind: str) -> Callable[[Slice], Figure]:
    def simulated(cells: Slice) -> Figure:
        coverage = simulate_coverage(matched_design(cells.values[0], cells.dataset), TRIALS)
        part = getattr(coverage, kind)
        rows = max(len(cells.values), len(cells.weights))
        return Figure(np.full(rows, 100 * part), TRIALS, added=1e4 * part * (1 - part) / TRIALS)

    return simulated


def _shrink(cells: Slice) -> Figure:
    """Standard error from resampling datasets over that from independent cells."""
    mean = cells.mean(cells.values)
    if mean.error is None:
        return NOT_KNOWN
    squares = cells.mean(cells.values**2).values
    n = cells.values.shape[1]
    spread = np.sqrt(np.maximum(squares - mean.values**2, 0) / (n - 1))
    return cells.figure(mean.error / spread)


def _of_values(by: Callable[[Float[Array, "R n"]], Array]) -> Callable[[Slice], Figure]:
    """A number of the cells that have weight: what has none was not drawn."""

    def figure(cells: Slice) -> Figure:
        drawn = np.where(cells.weights > 0, cells.values, np.nan)
        return cells.figure(by(drawn))

    return figure


def _fixed(by: Callable[[Float[Array, " n"]], SupportsFloat]) -> Callable[[Slice], Figure]:
    """A number that other draws do not change: of sizes and counts."""

    def figure(cells: Slice) -> Figure:
        rows = max(len(cells.values), len(cells.weights))
        return Figure(np.full(rows, float(by(cells.values[0]))), cells.values.shape[1])

    return figure


def _of_means(by: Callable[..., Array], *axes: str) -> Callable[[Slice], Figure]:
    """A number of the means over cells that agree in these axes."""
    return lambda cells: cells.figure(by(cells.per(*axes), axis=1))


def _groups(*axes: str) -> Callable[[Slice], Figure]:
    return lambda cells: Figure(np.full(len(cells.weights), float(cells._member(*axes).shape[1])), len(cells.seed))


def _spearman(cells: Slice) -> Figure:
    if len(cells.values) > 1:
        rho = np.array(
            [rank_correlation(a, b) for a, b in zip(*np.broadcast_arrays(cells.values, cells.other), strict=True)]
        )
    else:
        rho = weighted_rank_correlation([cells.values[0], cells.other[0]], cells.weights)
    G = len(np.unique(cells.dataset))
    found = lambda: spearman(cells.values[0], cells.other[0], cells.dataset)  # noqa: E731
    return Figure(rho, cells.values.shape[1], G, draws=cells.draws, estimated=found)


OF_CELLS: Mapping[str, Callable[[Slice], Figure]] = {
    "mean": lambda cells: cells.mean(cells.values),
    "mean of column means": _of_means(np.mean, "shots"),
    "largest |value|": _of_values(lambda values: np.nanmax(np.abs(values), axis=1)),
    "mean |value|": lambda cells: cells.mean(np.abs(cells.values)),
    "sum": _fixed(np.sum),
    "sum over strata": _of_means(np.sum, "dataset", "backbone"),
    "sum over datasets": _of_means(np.sum, "dataset"),
    "orders of magnitude": _fixed(lambda values: np.log10(values.max() / values.min())),
    "cells": _fixed(len),
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


def made_of(values: Array, figures: Figures) -> Figure:
    """A number made of figures; it varies with the draws if one of them does."""
    added = max(figure.added for figure in figures.values())
    return Figure(values, len(figures), added=added, draws=max(figure.draws for figure in figures.values()))


def stacked(figures: Figures) -> Float[Array, "R k"]:
    """The figures of every row side by side."""
    return np.stack(np.broadcast_arrays(*(figure.values for figure in figures.values())), axis=1)


def _count(true: Callable[[Figure], Array]) -> Callable[[Figures], Figure]:
    return lambda figures: made_of(np.sum([true(figure).astype(float) for figure in figures.values()], axis=0), figures)


def _reduced(by: Callable[..., Array]) -> Callable[[Figures], Figure]:
    return lambda figures: made_of(by(stacked(figures), axis=1), figures)


def _largest_exception(values: Float[Array, "R k"], axis: int) -> Array:
    return np.where(values <= 0, np.abs(values), 0).max(axis=axis)


def _rows(figures: Figures) -> list[dict[str, Array]]:
    """Figures whose labels differ in the last word only, side by side."""
    rows: dict[tuple[str, ...], dict[str, Array]] = {}
    for label, figure in figures.items():
        rows.setdefault(label[:-1], {})[label[-1]] = figure.values
    return list(rows.values())


def _counted(figures: Figures, true: Callable[[dict[str, Array]], Array]) -> Figure:
    rows = _rows(figures)
    figure = made_of(np.sum([true(row).astype(float) for row in rows], axis=0), figures)
    return Figure(figure.values, len(rows), draws=figure.draws)


def _inside_band(row: dict[str, Array]) -> Array:
    return (row["band_low"] <= row["zs_ensemble"]) & (row["zs_ensemble"] <= row["band_high"])


def _led_by_probe(row: dict[str, Array]) -> Array:
    methods = [method for method in row if method != "oracle_lambda"]
    best = np.argmax(np.stack([row[method] for method in methods]), axis=0)
    return np.isin(np.array(methods)[best], PROBES_AND_GDA)


def _gap_closed(figures: Figures) -> Figure:
    """Mean over shots of (LOO − fixed) / (validation − fixed); NaN where there is no gap at some shot count."""
    rows = _rows(figures)
    fixed, free, tuned = (np.stack([row[f"gda_alpha{kind}"] for row in rows]) for kind in ("1", "_loo", "_val"))
    gap = np.where(tuned == fixed, np.nan, tuned - fixed)
    return made_of(((free - fixed) / gap).mean(axis=0), figures)


OF_FIGURES: Mapping[str, Callable[[Figures], Figure]] = {
    "min": _reduced(np.min),
    "max": _reduced(np.max),
    "mean in per cent": _reduced(lambda values, axis: 100 * values.mean(axis)),
    "median": _reduced(np.median),
    "range": _reduced(np.ptp),
    "negative": _reduced(lambda values, axis: -values[:, 0]),
    "largest |value|": _reduced(lambda values, axis: np.abs(values).max(axis)),
    "largest |value| not above zero": _reduced(_largest_exception),
    "largest factor from one": _reduced(lambda values, axis: np.maximum(values, 1 / values).max(axis)),
    "count above zero": _count(lambda figure: figure.values > 0),
    "count not above zero": _count(lambda figure: figure.values <= 0),
    "count below zero": _count(lambda figure: figure.values < 0),
    "count far below zero": _count(lambda figure: figure.values < FAR_BELOW),
    "count resolved": _count(lambda figure: figure.excludes_zero),
    "count resolved above zero": _count(lambda figure: figure.excludes_zero & (figure.values > 0)),
    "count inside the band": lambda figures: _counted(figures, _inside_band),
    "count led by a probe or GDA": lambda figures: _counted(figures, _led_by_probe),
    "part of the gap closed": _gap_closed,
}
OF_PAIRS: Mapping[str, Callable[[Float[Array, "R k"], Float[Array, "R k"]], Array]] = {
    "median of quotients": lambda first, second: np.median(first / second, axis=1),
    "quotient": lambda first, second: first[:, 0] / second[:, 0],
    "per cent of |value|": lambda first, second: 100 * first[:, 0] / np.abs(second[:, 0]),
    "rank correlation with |value|": lambda first, second: rank_correlations(first, np.abs(second)),
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
