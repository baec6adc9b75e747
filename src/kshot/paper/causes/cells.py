"""Two runs cell by cell: how far their means over draws are apart, and how these differences vary together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.paper.arms import Observations
from kshot.types import Array

AXES = ("dataset", "backbone", "tier", "shots")
# Of the noise's covariance this part is taken as independent: ten draws show few of its directions.
INDEPENDENT = 0.5
SAME_DRAWS = 0.5
# The least part of the other run's accuracy that is one in the same unit.
SAME_UNIT = 0.02


@dataclass(frozen=True)
class Cube:
    """Accuracies, and chosen ratios in hundredths, of one run by (dataset, backbone, tier, shots, draw, item)."""

    values: Float[Array, "d b t k s i"]

    @cached_property
    def mean(self) -> Float[Array, "d b t k i"]:
        with np.errstate(invalid="ignore"):
            known = np.isfinite(self.values)
            return np.where(known, self.values, 0).sum(axis=4) / known.sum(axis=4)

    @cached_property
    def residues(self) -> Float[Array, "d b t k s i"]:
        """Draws minus their mean, scaled so that their products sum to the covariance of the mean; 0 where absent."""
        known = np.isfinite(self.values)
        n = known.sum(axis=4, keepdims=True)
        scale = np.sqrt(np.where(n > 1, n * (n - 1), np.inf))
        return np.where(known, self.values - self.mean[:, :, :, :, None], 0) / scale


@dataclass(frozen=True)
class CellPair:
    """The cells that two runs share."""

    names: Mapping[str, Sequence]
    items: Sequence[tuple[str, str]]
    ours: Cube
    theirs: Cube
    paired: bool

    @cached_property
    def methods(self) -> list[str]:
        return [method for method, measure in self.items if measure == "accuracy"]

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """The names of every axis, and of the methods, as a cause says them."""
        said = {axis: [f"K = {n}" if axis == "shots" else str(n) for n in self.names[axis]] for axis in AXES}
        return {**said, "method": self.methods}

    @property
    def accuracies(self) -> list[Float[Array, "d b t k s m"]]:
        """Of our run and of the other."""
        return [cube.values[..., : len(self.methods)] for cube in (self.ours, self.theirs)]

    @property
    def means(self) -> list[Float[Array, "d b t k m"]]:
        """Accuracies over draws, of our run and of the other."""
        return [cube.mean[..., : len(self.methods)] for cube in (self.ours, self.theirs)]

    @cached_property
    def draw_variance(self) -> list[Float[Array, "d b t k m"]]:
        """Of the mean over draws of each accuracy: in our run and in the other; 0 for a single draw."""
        return [(cube.residues[..., : len(self.methods)] ** 2).sum(axis=4) for cube in (self.ours, self.theirs)]

    @cached_property
    def comparable(self) -> Bool[Array, "d b t k m"]:
        """Accuracies of both runs, over two draws or more, that are in the same unit: others are equal by rounding."""
        several = np.all([np.isfinite(values).sum(axis=4) > 1 for values in self.accuracies], axis=0)
        ours, theirs = self.means
        with np.errstate(invalid="ignore"):
            return several & (ours > SAME_UNIT * theirs)

    @cached_property
    def known(self) -> Bool[Array, "d b t k i"]:
        return np.isfinite(self.ours.mean) & np.isfinite(self.theirs.mean)

    @cached_property
    def difference(self) -> Float[Array, " N"]:
        return (self.ours.mean - self.theirs.mean)[self.known]

    @cached_property
    def codes(self) -> dict[str, Int[Array, " N"]]:
        """The number of each entry's name on every axis; methods are numbered for accuracies and ratios alike."""
        found = dict(zip((*AXES, "item"), np.nonzero(self.known), strict=True))
        return {**found, "method": found["item"] % len(self.methods)}

    @cached_property
    def is_accuracy(self) -> Bool[Array, " N"]:
        return self.codes["item"] < len(self.methods)

    @cached_property
    def noise_group(self) -> Int[Array, " N"]:
        """The number of each entry's (dataset, shot count, item), which share their noise."""
        c = self.codes
        return (c["dataset"] * len(self.names["shots"]) + c["shots"]) * len(self.items) + c["item"]

    @cached_property
    def factors(self) -> Float[Array, "N f"]:
        """Columns whose products inside a dataset sum to the covariance of the differences."""
        a, b = (np.moveaxis(cube.residues, 4, 0)[:, self.known].T for cube in (self.ours, self.theirs))
        return a - b if self.paired else np.concatenate([a, b], axis=1)

    @cached_property
    def freedom(self) -> int:
        return self.factors.shape[1] - (1 if self.paired else 2)

    @cached_property
    def variance(self) -> Float[Array, " N"]:
        """Of each difference, averaged over encoders and tiers; never below the median of its kind, so that what has no
        noise does not outweigh the rest."""
        group = self.noise_group
        mean = np.bincount(group, (self.factors**2).sum(axis=1)) / np.maximum(np.bincount(group), 1)
        mean = mean[group]
        for kind in (self.is_accuracy, ~self.is_accuracy):
            positive = mean[kind & (mean > 1e-12)]
            floor = np.median(positive) if len(positive) else 1e-4
            mean[kind] = np.maximum(mean[kind], floor)
        return mean

    @cached_property
    def diagonal(self) -> Float[Array, " N"]:
        return 1 / (INDEPENDENT * self.variance)

    @cached_property
    def inner(self) -> Float[Array, "g f f"]:
        """By dataset, the half of Woodbury's correction that a pattern's products with `factors` / variance take."""
        halves = []
        for dataset in range(len(self.names["dataset"])):
            here = self.codes["dataset"] == dataset
            F = self.factors[here]
            small = np.eye(F.shape[1]) + (1 - INDEPENDENT) * F.T @ (self.diagonal[here][:, None] * F)
            halves.append(np.linalg.cholesky(np.linalg.inv(small)) * np.sqrt(1 - INDEPENDENT) / INDEPENDENT)
        return np.stack(halves)

    def solve(self, pattern: Float[Array, " N"]) -> Float[Array, " N"]:
        """The pattern times the inverse of the covariance, dataset by dataset (Woodbury)."""
        solved = self.diagonal * pattern
        for dataset, half in enumerate(self.inner):
            here = self.codes["dataset"] == dataset
            scaled = self.factors[here] / self.variance[here][:, None]
            solved[here] -= scaled @ (half @ (half.T @ (scaled.T @ pattern[here])))
        return solved


def cell_pair(ours: Observations, theirs: Observations) -> CellPair | None:
    """The cells and methods of both; None where they share none."""
    names = {axis: sorted({*ours.panel.cells[axis].tolist()} & {*theirs.panel.cells[axis].tolist()}) for axis in AXES}
    methods = [m for m in ours.panel.methods if m in theirs.panel.methods]
    if not methods or not all(names.values()):
        return None
    items = [(m, measure) for measure in ("accuracy", "ratio") for m in methods]
    cubes = [cube_of(run, names, items) for run in (ours, theirs)]
    return CellPair(names, items, *cubes, paired=_same_draws(*cubes))


def transplanted(run: Observations, cells: CellPair, chosen: Bool[Array, " N"]) -> Observations:
    """Our run with the other run's means in the chosen cells."""
    change = np.zeros(cells.known.shape)
    change[cells.known] = np.where(chosen, -cells.difference, 0)
    places = [{name: i for i, name in enumerate(cells.names[axis])} for axis in AXES]
    at = [[place.get(name, -1) for name in run.keys[axis].tolist()] for axis, place in zip(AXES, places, strict=True)]
    codes = np.array(at)
    here = (codes >= 0).all(axis=0)
    shifts = {}
    for number, (method, measure) in enumerate(cells.items):
        shift = np.zeros((1, len(run)))
        shift[0, here] = change[(*codes[:, here], number)] / (100 if measure == "ratio" else 1)
        if shift.any():
            shifts[method, measure] = shift
    return replace(run, shifts=shifts)


def cube_of(run: Observations, names: Mapping[str, Sequence], items: Sequence[tuple[str, str]]) -> Cube:
    cells = run.panel
    seeds = sorted(set(cells.seed.tolist()))
    places, keep = [], np.ones(len(cells), bool)
    for axis, wanted in (*((axis, names[axis]) for axis in AXES), ("seed", seeds)):
        place = {name: i for i, name in enumerate(wanted)}
        codes = np.array([place.get(name, -1) for name in getattr(cells, axis).tolist()])
        places.append(codes)
        keep &= codes >= 0
    values = np.full((*(len(names[axis]) for axis in AXES), len(seeds), len(items)), np.nan)
    at = tuple(codes[keep] for codes in places)
    for number, (method, measure) in enumerate(items):
        column = cells.column(method, "value" if measure == "accuracy" else "ratio")
        values[(*at, number)] = (column if measure == "accuracy" else 100 * column)[keep]
    return Cube(values)


def _same_draws(a: Cube, b: Cube) -> bool:
    """Whether draws of the same number are the same draws: most of what varies with them varies alike."""
    if a.values.shape != b.values.shape:
        return False
    x, y = a.residues, b.residues
    both = np.sqrt((x**2).sum() * (y**2).sum())
    return bool(both > 0 and (x * y).sum() / both > SAME_DRAWS)
