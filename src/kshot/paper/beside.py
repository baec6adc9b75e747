"""One test of a run beside printed numbers: over all figures, and over all places where they may lie apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kshot.paper.figures import FigureTable, Place
from kshot.paper.noise import Noise
from kshot.stats.scores import normal_level, normal_score
from kshot.types import Array

# A fault-free run is called different once in 33 by design; benchmarks/verdict.py counts how often it is.
LEVEL = 0.03
# Fewer figures tell nothing about places.
LEAST_FIGURES = 30
# Draws of every dataset from which places decide, not only figures.
DECIDING_DRAWS = 4
# The variance of a place is mixed with so many degrees of freedom of the mean design effect of all places.
PLACE_PRIOR = 8.0
# The cosine of two places' responses from which they are one.
ALIKE = 0.99
# Other test pictures shift accuracies: shares of the variance that are common to encoders, of an encoder, of a method.
COMMON, OF_ENCODER, OF_METHOD = 0.6, 0.2, 0.2
POOL_SHARE, TYPICAL = 0.68, 0.65


@dataclass(frozen=True)
class Apart:
    """How far the figures of a place lie apart: in points, as a normal score, and squared in units of its variance."""

    place: Place
    size: float
    score: float
    squared: float


@dataclass(frozen=True)
class GlobalTest:
    """Normal scores and standard deviations of the figures, the places by what explains most, and p over everything."""

    score: Float[Array, " p"]
    spread: Float[Array, " p"]
    limit: float
    p: float
    places: Sequence[Apart]


def global_test(
    table: FigureTable,
    difference: Float[Array, " p"],
    noise: Noise,
    step: Float[Array, " p"],
    splits: Float[Array, "c p"],
) -> GlobalTest:
    """`step`: half of the last printed place; `splits`: what other test pictures bring, as deviations."""
    fixed = step**2 / 3 + (splits**2).sum(axis=0)
    spread = np.sqrt(noise.variance + fixed)
    t = difference / spread
    score = np.asarray(normal_score(t, noise.freedom))
    places = _places(table, t, noise, spread, fixed=np.vstack([splits, np.diag(step / np.sqrt(3))]) / spread)
    # With few draws, or where variances are lent, places are shown and do not decide: their variances are too unsure
    # (with two draws, 32 of 100 fault-free runs were called different).
    with_places = bool(places) and not noise.borrowed and _draws(table) >= DECIDING_DRAWS
    p = at_least_once(np.abs(score).max(), len(score))
    if with_places:
        p = min(1.0, 2 * min(p, at_least_once(max(abs(one.score) for one in places), len(places))))
    limit = normal_level(LEVEL / 2 if with_places else LEVEL, len(score))
    return GlobalTest(score, spread, limit, p, sorted(places, key=lambda one: -one.squared))


def _draws(table: FigureTable) -> int:
    return int(np.unique(table.home, return_counts=True)[1].min(initial=0))


def _places(
    table: FigureTable, t: Float[Array, " p"], noise: Noise, spread: Float[Array, " p"], fixed: Float[Array, "c p"]
) -> list[Apart]:
    if len(t) < LEAST_FIGURES:
        return []
    places, responses = table.entries.responses()
    x = responses / spread[:, None]
    x, places = _distinct(x, places)
    by_draw = ((noise.factors / spread) @ x) ** 2
    homes = np.unique(noise.home)
    by_dataset = np.stack([by_draw[noise.home == d].sum(axis=0) for d in homes])
    freedom = np.array([max((noise.home == d).sum() - 1, 1) for d in homes])
    total = by_dataset.sum(axis=0) + ((fixed @ x) ** 2).sum(axis=0)
    squares = (by_dataset**2 / freedom[:, None]).sum(axis=0)
    df = np.where(squares > 0, by_dataset.sum(axis=0) ** 2 / np.where(squares > 0, squares, 1), 1)
    plain = (x**2).sum(axis=0)
    # Variance of a place over that of independent figures: few draws are mixed with the mean of all places.
    usual = (total / plain).mean()
    mixed = (PLACE_PRIOR * usual * plain + df * total) / (PLACE_PRIOR + df)
    against = x.T @ t
    df = np.zeros_like(df) if noise.kept else df
    score = np.asarray(normal_score(against / np.sqrt(mixed), PLACE_PRIOR + df))
    squared = against**2 / np.where(total > 0, total, np.inf)
    rows = zip(places, against / plain, score, squared, strict=True)
    return [Apart(place, *map(float, numbers)) for place, *numbers in rows]


def _distinct(x: Float[Array, "p g"], places: list[Place]) -> tuple[Float[Array, "p h"], list[Place]]:
    """Of places to which the figures answer alike, the first, which has the fewest names."""
    unit = x / np.sqrt((x**2).sum(axis=0))
    alike = np.abs(unit.T @ unit) > ALIKE
    first = [n for n in range(len(places)) if not alike[n, :n].any()]
    return x[:, first], [places[n] for n in first]


def other_pictures(table: FigureTable, own_split: Sequence[str], test_sizes: Mapping[str, int]) -> Float[Array, "c p"]:
    """Deviations of the figures if the test pictures of these datasets are another 68/32 split of the same."""
    entries = table.entries
    columns = [np.zeros((entries.figures, 1))]
    accuracy = entries.is_accuracy[entries.codes["item"]]
    for name in own_split:
        if name not in entries.names["dataset"]:
            continue
        here = accuracy & (entries.codes["dataset"] == list(entries.names["dataset"]).index(name))
        size = 100 * np.sqrt(2 * POOL_SHARE * TYPICAL * (1 - TYPICAL) / test_sizes[name])
        encoders, items = len(entries.names["backbone"]), len(entries.names["item"])
        backbone = entries.codes["backbone"]
        method = backbone * items + entries.codes["item"]
        for share, group, count in (
            (COMMON, np.zeros_like(backbone), 1),
            (OF_ENCODER, backbone, encoders),
            (OF_METHOD, method, encoders * items),
        ):
            columns.append(size * np.sqrt(share) * entries.sums(np.where(here, group, -1), count))
    return np.concatenate(columns, axis=1).T


def at_least_once(score: float, tests: int) -> float:
    """The probability that the largest of so many independent normal scores is at least this."""
    from scipy.special import ndtr

    return float(-np.expm1(tests * np.log1p(-2 * ndtr(-score))))
