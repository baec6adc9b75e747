"""Noise of figures over other draws: variances that figures of one kind and of one dataset lend each other.

A re-run shares datasets, features, test pictures and code; only its draws differ. All methods, tiers, encoders and shot
counts of a draw stay together, because they share pictures.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.paper.figures import Entries, FigureTable
from kshot.types import Array

BACKBONES = ("rn50", "vitb32", "vitb16", "vitl14", "siglip", "siglip2")
# What other figures tell counts at most as much as so many degrees of freedom, and at most three times as much as the
# draws themselves.
MOST_PRIOR, MOST_LENT = 10.0, 4
# With fewer figures to spare, or one draw, variances come from the kept run, with so many degrees of freedom.
SPARE, KEPT_FREEDOM, MOST_KEPT = 20, 4.0, 6.0
# The kept run's deviations: beyond K = 4 they fall as one over the root of K; what it does not hold varies as its heads
# do in the middle. How much of a variance encoders and tiers share is unknown (its datasets have one encoder each), so
# parts of it are taken as shared by both, by tiers only and by neither that sum to twice the variance.
KEPT_SHOTS, KEPT_DRAWS, KEPT_DEFAULT = (1, 2, 4), 16, (1.0, 0.8, 0.7)
SHARED = (0.5, 0.5, 1.0)


@dataclass(frozen=True)
class Noise:
    """Of every figure: the variance over other draws with its degrees of freedom, and deviations (J x p) whose products
    sum, within a dataset, to the covariance of the figures; `kept` where the kept run gave all of it."""

    variance: Float[Array, " p"]
    freedom: Float[Array, " p"]
    factors: Float[Array, "J p"]
    home: Int[Array, " J"]
    kept: bool
    borrowed: bool


def family(name: str, datasets: Sequence[str] = ()) -> str:
    """The claim's id without names of datasets and encoders."""
    lower = {dataset.lower() for dataset in datasets}
    return ".".join("*" if word in lower or word in BACKBONES else word for word in name.split("."))


def draw_noise(table: FigureTable, paper_datasets: Sequence[str], theirs: Int[Array, " D"] | int) -> Noise:
    """Noise of our figure minus another's of the same cells, from so many draws of each dataset."""
    counts = table.counts
    single = bool((counts.max(axis=0) < 2).all())
    deviations, home = (kept_deviations(table), _kept_home(table)) if single else (table.deviations, table.home)
    D = len(table.datasets)
    freedom = np.zeros((D, len(table.ids)))
    q = np.zeros_like(freedom)
    for d in range(D):
        e, n = deviations[home == d], counts[d]
        draws = np.full(len(n), float(KEPT_DRAWS)) if single else n.astype(float)
        freedom[d] = np.maximum(draws - 1, 0) * (n > 0)
        q[d] = np.where(freedom[d] > 0, (e**2).sum(axis=0) / np.maximum(np.where(single, n, n) * (draws - 1), 1), 0)
    if single:
        return _difference(table, q, np.where(q > 0, KEPT_FREEDOM, 0), deviations, home, theirs, (True, True))
    families = np.unique([family(name, paper_datasets) for name in table.ids], return_inverse=True)[1].reshape(-1)
    moderated, df, spare = moderate(q, freedom, families)
    if spare < SPARE:
        kept = kept_deviations(table)
        v = np.stack([(kept[_kept_home(table) == d] ** 2).sum(axis=0) for d in range(D)]) / (KEPT_DRAWS - 1)
        v = v / np.maximum(counts, 1)
        moderated = np.where(v > 0, (KEPT_FREEDOM * v + freedom * q) / (KEPT_FREEDOM + freedom), q)
        df = np.where(v > 0, KEPT_FREEDOM + freedom, freedom)
    return _difference(table, moderated, df, deviations, home, theirs, (False, spare < SPARE))


def _difference(
    table: FigureTable,
    q: Float[Array, "D p"],
    df: Float[Array, "D p"],
    deviations: Float[Array, "J p"],
    home: Int[Array, " J"],
    theirs: Int[Array, " D"] | int,
    lent: tuple[bool, bool],
) -> Noise:
    """Var(ours − theirs) = Σ over datasets of q · (1 + our draws / theirs); Satterthwaite's degrees of freedom."""
    counts = table.counts
    factor = 1 + counts / np.maximum(np.reshape(theirs, (-1, 1)), 1)
    parts = factor * q
    variance = parts.sum(axis=0)
    squares = (parts**2 / np.where(df > 0, df, 1)).sum(axis=0)
    freedom = np.where(squares > 0, variance**2 / np.where(squares > 0, squares, 1), 1)
    most = MOST_KEPT if lent[0] else max(int((np.maximum(counts.max(axis=1), 1) - 1).sum()), 4)
    rows = np.array([(home == d).sum() for d in home])
    scale = factor[home] / np.maximum(counts[home] * np.maximum(rows - 1, 1)[:, None], 1)
    return Noise(variance, np.minimum(freedom, most), deviations * np.sqrt(scale), home, *lent)


def moderate(
    q: Float[Array, "D p"], freedom: Float[Array, "D p"], families: Int[Array, " p"]
) -> tuple[Float[Array, "D p"], Float[Array, "D p"], int]:
    """Variances of figures by dataset, moderated by an additive fit of their logarithms to figures of a kind and
    datasets (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004); their degrees of freedom; and how many entries the fit has
    to spare."""
    from scipy.special import digamma, polygamma

    at_d, at_p = np.nonzero((q > 0) & (freedom > 0))
    if not len(at_d):
        return q, freedom, 0
    half = freedom[at_d, at_p] / 2
    y = np.log(q[at_d, at_p]) - digamma(half) + np.log(half)
    weight, kind = 1 / polygamma(1, half), families[at_p]
    of_kind, of_dataset = np.zeros(families.max() + 1), np.zeros(len(q))
    for _ in range(30):
        of_kind = _weighted_mean(y - of_dataset[at_d], weight, kind, len(of_kind))
        of_dataset = _weighted_mean(y - of_kind[kind], weight, at_d, len(of_dataset))
    fit = of_kind[kind] + of_dataset[at_d]
    spare = len(y) - len(np.unique(kind)) - len(np.unique(at_d))
    excess = ((y - fit) ** 2).sum() / max(spare, 1) - polygamma(1, half).mean()
    prior = min(MOST_PRIOR, 2 * inverse_trigamma(excess)) if excess > 0 else MOST_PRIOR
    expected = np.exp(fit + digamma(prior / 2) - np.log(prior / 2))
    mixed, df = q.copy(), np.zeros_like(q)
    own = freedom[at_d, at_p]
    mixed[at_d, at_p] = (prior * expected + own * q[at_d, at_p]) / (prior + own)
    df[at_d, at_p] = np.minimum(prior + own, MOST_LENT * own)
    return mixed, df, spare


def _weighted_mean(values: Array, weight: Array, group: Array, size: int) -> Array:
    return np.bincount(group, weight * values, size) / np.maximum(np.bincount(group, weight, size), 1e-9)


def inverse_trigamma(value: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import polygamma

    if not polygamma(1, 1e3) < value < 1e5:
        return 1e3
    root: Any = brentq(lambda x: polygamma(1, x) - value, 1e-3, 1e3)
    return float(root)


def kept_deviations(table: FigureTable) -> Float[Array, "J p"]:
    """Deviations of the figures as draws of the kept run would give them: so many a dataset, simulated from its
    standard deviations."""
    entries, rng = table.entries, np.random.default_rng(0)
    sd = _kept_deviation(entries)
    levels, code = [], np.zeros(len(sd), int)
    for share, axes in zip(SHARED, (("shots", "item"), ("backbone",), ("tier",)), strict=True):
        for axis in axes:
            code = code * len(entries.names[axis]) + entries.codes[axis]
        levels.append((share, code))
    # A figure's own draws each have a part of its weight; one draw in place of all has the sum.
    found = np.zeros((KEPT_DRAWS, len(table.datasets), entries.figures))
    varies = entries.draw >= 0
    for number in range(KEPT_DRAWS):
        for d in range(len(table.datasets)):
            noise = sum(np.sqrt(share) * rng.normal(size=code.max() + 1)[code] for share, code in levels)
            at = varies & (entries.codes["dataset"] == d)
            found[number, d] = np.bincount(
                entries.figure[at], (entries.weight * sd * noise)[at], minlength=entries.figures
            )
    found -= found.mean(axis=0)
    return found.transpose(1, 0, 2).reshape(-1, entries.figures)


def _kept_home(table: FigureTable) -> Int[Array, " J"]:
    return np.repeat(np.arange(len(table.datasets)), KEPT_DRAWS)


def _kept_deviation(entries: Entries) -> Float[Array, " k"]:
    """One draw's standard deviation of every entry; 0 where shots have no influence."""
    shots = np.array([max(int(name), 1) for name in entries.names["shots"]])
    known = [kept_run().get(name, KEPT_DEFAULT) for name in entries.names["item"]]
    late = np.sqrt(np.maximum(shots / KEPT_SHOTS[-1], 1))
    by_item = np.array([np.interp(np.log2(shots), np.log2(KEPT_SHOTS), values) / late for values in known])
    return by_item[entries.codes["item"], entries.codes["shots"]]


@lru_cache
def kept_run() -> dict[str, list[float]]:
    """Standard deviations of one draw by item, at K = 1, 2, 4."""
    return tomllib.loads(Path(__file__).with_name("kept_noise.toml").read_text(encoding="utf-8"))
