"""Noise of a re-run: how far every claim's figure would move over other draws.

A re-run shares datasets, features, test pictures and code; only its draws differ. Draws are resampled within each
dataset. All methods, tiers, encoders and shot counts of a draw stay together, because they share shots: an encoder sees
the same pictures as another, and K shots contain K/2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.paper.arms import Arms, Observations
from kshot.paper.formulas import Figure
from kshot.types import Array

RESAMPLES, SEED = 200, 0
# Fewer draws show no noise of their own.
LEAST_DRAWS = 3
MEASURED, PREDICTED = "spread.measured SD", "spread.predicted SD"
# A prior from other datasets weighs at most as much as this many degrees of freedom.
MOST_PRIOR = 20.0
BACKBONES = ("rn50", "vitb32", "vitb16", "vitl14", "siglip")


@dataclass(frozen=True)
class Resamples:
    """Rows of weights: the records as they are, then without each draw, then draws drawn with replacement."""

    draws: Mapping[str, Sequence[int]]

    @cached_property
    def left_out(self) -> list[tuple[str, int]]:
        return [(dataset, seed) for dataset, seeds in self.draws.items() for seed in seeds]

    @property
    def rows(self) -> int:
        return 1 + len(self.left_out) + RESAMPLES

    def weights(self, observed: Observations) -> Float[Array, "R n"]:
        weights = np.ones((self.rows, len(observed)))
        seed = observed.keys["seed"]
        place = 1
        for dataset, seeds in self.draws.items():
            drawn = np.random.default_rng([SEED, *dataset.encode()]).multinomial(
                len(seeds), np.full(len(seeds), 1 / len(seeds)), RESAMPLES
            )
            here = observed.on("dataset", [dataset])
            for number, name in enumerate(seeds):
                columns = np.flatnonzero(here & (seed == name))
                # The dataset keeps its weight: what no draw changes stays as it is.
                weights[place, here & (seed >= 0)] = len(seeds) / (len(seeds) - 1)
                weights[place, columns] = 0
                weights[1 + len(self.left_out) :, columns] = drawn[:, [number]]
                place += 1
        return weights

    def of(self, arms: Arms) -> Arms:
        """The arms with these rows."""
        return {
            name: replace(arm, weights=self.weights(arm), shifts=self._spread_noise(arm)) for name, arm in arms.items()
        }

    def _spread_noise(self, observed: Observations) -> dict[tuple[str, str], Float[Array, "R n"]]:
        """Noise of the spread over draws, of which only one value a stratum is stored: how much measured over predicted
        varies over the strata of the same K, which is noise and error of the prediction."""
        if MEASURED not in observed.probes or PREDICTED not in observed.probes:
            return {}
        measured, predicted = observed.probes[MEASURED], observed.probes[PREDICTED]
        noise = np.random.default_rng([SEED, 1]).normal(size=(RESAMPLES, len(observed)))
        scale = np.zeros(len(observed))
        for shots in observed.names["shots"]:
            known = observed.on("shots", [shots]) & (measured > 0) & (predicted > 0)
            if known.sum() >= LEAST_DRAWS:
                scale[known] = np.log(measured[known] / predicted[known]).std(ddof=1)
        shift = np.zeros((self.rows, len(observed)))
        shift[-RESAMPLES:] = np.where(np.isfinite(measured), measured, 0) * np.expm1(scale * noise)
        return {(MEASURED, "accuracy"): shift}


def resamples(arms: Arms) -> Resamples:
    """For the draws that a run has of each dataset."""
    found: dict[str, set[int]] = {}
    for observed in arms.values():
        for dataset in observed.names["dataset"]:
            seeds = observed.keys["seed"][observed.on("dataset", [dataset])]
            found.setdefault(dataset, set()).update(seeds[seeds >= 0].tolist())
    return Resamples({d: sorted(seeds) for d, seeds in sorted(found.items()) if len(seeds) >= LEAST_DRAWS})


@dataclass(frozen=True)
class Noise:
    """Variance of figures over other draws with its degrees of freedom; `moved` are the resampled deviations in units
    of the standard deviation, `exact` what does not depend on draws, `borrowed` what other strata lent."""

    variance: Float[Array, " c"]
    freedom: Float[Array, " c"]
    moved: Float[Array, "B c"]
    exact: Array
    borrowed: Array


def noise(ids: Sequence[str], figures: Sequence[Figure], plan: Resamples, datasets: Sequence[str]) -> Noise:
    """The noise of each figure; those of one dataset lend each other what five draws cannot tell."""
    values = np.stack([figure.values for figure in figures], axis=1)
    draws = np.array([figure.draws for figure in figures])
    first = 1 + len(plan.left_out)
    resampled = values[first:]
    n = np.maximum(draws, 2)
    variance = np.nanvar(resampled, axis=0, ddof=1) * n / (n - 1)
    freedom = _freedom(values[1:first], plan)
    exact = draws == 0
    lacking = ~exact & (draws < LEAST_DRAWS)
    variance[lacking] = np.nan
    moderated, wider, borrowed = moderate(ids, np.where(exact, np.nan, variance), freedom, lacking, datasets)
    scale = np.sqrt(np.where(variance > 0, variance, 1))
    moved = np.nan_to_num((resampled - np.nanmean(resampled, axis=0)) * np.sqrt(n / (n - 1)) / scale)
    added = np.array([figure.added for figure in figures])
    return Noise(np.where(exact, 0, moderated) + added, wider, moved, exact & (added == 0), borrowed)


def _freedom(without: Float[Array, "J c"], plan: Resamples) -> Float[Array, " c"]:
    """Satterthwaite's degrees of freedom from the share of each dataset, by leaving out one draw at a time."""
    total, square, start = np.zeros(without.shape[1]), np.zeros(without.shape[1]), 0
    for seeds in plan.draws.values():
        n = len(seeds)
        part = without[start : start + n]
        share = (n - 1) / n * ((part - part.mean(axis=0)) ** 2).sum(axis=0)
        total, square, start = total + share, square + share**2 / (n - 1), start + n
    all_draws = sum(len(seeds) - 1 for seeds in plan.draws.values())
    return np.where(square > 0, total**2 / np.where(square > 0, square, 1), max(all_draws, 1))


def moderate(
    ids: Sequence[str],
    variance: Float[Array, " c"],
    freedom: Float[Array, " c"],
    lacking: Array,
    datasets: Sequence[str],
) -> tuple[Float[Array, " c"], Float[Array, " c"], Array]:
    """Variances of claims about one dataset, moderated by the same claim on other datasets and by other claims on the
    same dataset (an additive fit of their logarithms; Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004)."""
    from scipy.special import digamma, polygamma

    variance, freedom = variance.copy(), freedom.copy()
    borrowed = np.zeros(len(ids), bool)
    words = [name.split(".") for name in ids]
    lower = {dataset.lower() for dataset in datasets}
    home = np.array([next((word for word in each if word in lower), "") for each in words])
    family = np.array([".".join("*" if w in lower or w in BACKBONES else w for w in each) for each in words])
    known = (home != "") & (variance > 0)
    wanted = known | ((home != "") & lacking & np.isin(family, family[known]) & np.isin(home, home[known]))
    design = np.concatenate(
        [(names[:, None] == np.unique(names[known])[None]).astype(float) for names in (family, home)], axis=1
    )
    spare = known.sum() - np.linalg.matrix_rank(design[known]) if known.any() else 0
    if spare < LEAST_DRAWS:
        return variance, freedom, borrowed
    half = freedom[known] / 2
    logs = np.log(variance[known]) - digamma(half) + np.log(half)
    fitted = design @ np.linalg.lstsq(design[known], logs, rcond=None)[0]
    excess = ((logs - fitted[known]) ** 2).sum() / spare - polygamma(1, half).mean()
    prior = min(MOST_PRIOR, 2 * _inverse_trigamma(excess)) if excess > 0 else MOST_PRIOR
    expected = np.exp(fitted + digamma(prior / 2) - np.log(prior / 2))
    own = np.where(known, freedom, 0)
    mixed = (prior * expected + own * np.where(known, variance, 0)) / (prior + own)
    borrowed = wanted & lacking
    return np.where(wanted, mixed, variance), np.where(wanted, own + prior, freedom), borrowed


def _inverse_trigamma(value: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import polygamma

    found: Any = brentq(lambda x: polygamma(1, x) - value, 1e-3, 1e6) if value < 1e5 else 1e-3
    return float(found)
