"""Figures that are means over cells, side by side: what every draw adds to each, and how each answers to a place.

A place is a set of cells that share names: a dataset, an encoder, a tier, a K, a method, or two of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.paper.arms import Arms
from kshot.paper.claims import Claim
from kshot.paper.formulas import Figure
from kshot.types import Array

AXES = ("dataset", "backbone", "tier", "shots")
ANY, WITH_SHOTS = "", "all with shots"
# Zero-shot accuracy uses none.
WITHOUT_SHOTS = "zero_shot"
SMALLEST = 1e-7
# How items that are no accuracies begin.
OTHER = ("ratio of ", "quantity ")


@dataclass(frozen=True)
class Place:
    """Names on the axes; an empty one stands for all."""

    dataset: str = ""
    backbone: str = ""
    tier: str = ""
    shots: str = ""
    item: str = ""

    def __str__(self) -> str:
        shots = f"K = {self.shots}" if self.shots else ""
        names = (self.dataset, self.backbone, self.tier and f"tier {self.tier}", shots, self.item)
        return " × ".join(filter(None, names)) or "everything"


@dataclass(frozen=True)
class FigureTable:
    """p figures. `parts` sum over draws to what varies; `counts` says how many draws of each dataset a figure has."""

    ids: Sequence[str]
    value: Float[Array, " p"]
    parts: Float[Array, "p J"]
    has: Bool[Array, "p J"]
    home: Int[Array, " J"]
    datasets: Sequence[str]
    entries: "Entries"

    @property
    def counts(self) -> Int[Array, "D p"]:
        return np.stack([self.has[:, self.home == d].sum(axis=1) for d in range(len(self.datasets))])

    @property
    def deviations(self) -> Float[Array, "J p"]:
        """e = n · (part − mean of the dataset's parts): how far the figure would be off, were every draw this one."""
        found = np.zeros_like(self.parts)
        for d in range(len(self.datasets)):
            here = self.home == d
            n = np.maximum(self.has[:, here].sum(axis=1, keepdims=True), 1)
            mean = self.parts[:, here].sum(axis=1, keepdims=True) / n
            found[:, here] = np.where(self.has[:, here], n * (self.parts[:, here] - mean), 0)
        found[np.abs(found) < SMALLEST * np.maximum(1, np.abs(self.value))[:, None]] = 0
        return found.T


@dataclass(frozen=True)
class Entries:
    """All cells of all figures in a row: the figure, the weight, the names' numbers, and the draw (−1: none)."""

    figure: Int[Array, " k"]
    weight: Float[Array, " k"]
    codes: Mapping[str, Int[Array, " k"]]
    names: Mapping[str, Sequence[str]]
    draw: Int[Array, " k"]
    figures: int

    def sums(self, group: Int[Array, " k"], size: int, weight: Float[Array, " k"] | None = None) -> Array:
        """Sums of the weights by figure and group; a negative group counts nowhere."""
        at = group >= 0
        weight = self.weight if weight is None else weight
        flat = np.bincount(self.figure[at] * size + group[at], weight[at], self.figures * size)
        return flat.reshape(self.figures, size)

    @property
    def is_accuracy(self) -> Bool[Array, " i"]:
        return np.array([not name.startswith(OTHER) for name in self.names["item"]])

    def responses(self) -> tuple[list[Place], Float[Array, "p g"]]:
        """What a point on the cells of each place does to every figure."""
        items = self.names["item"]
        accuracies = np.flatnonzero(self.is_accuracy)
        shots = [i for i in accuracies.tolist() if items[i] != WITHOUT_SHOTS]
        places: list[Place] = []
        columns: list[Array] = []
        for axes in ((), *((axis,) for axis in AXES), *combinations(AXES, 2)):
            size, code = 1, np.zeros(len(self.figure), int)
            for axis in axes:
                size, code = size * len(self.names[axis]), code * len(self.names[axis]) + self.codes[axis]
            by_item = self.sums(code * len(items) + self.codes["item"], size * len(items))
            by_item = by_item.reshape(self.figures, size, len(items))
            groups = [(ANY, by_item[..., accuracies].sum(axis=2)), (WITH_SHOTS, by_item[..., shots].sum(axis=2))]
            if len(axes) < 2:
                groups += [(name, by_item[..., i]) for i, name in enumerate(items)]
            else:
                groups = groups[:1]
            for item, column in groups:
                for number, names in enumerate(np.ndindex(*(len(self.names[axis]) for axis in axes))):
                    if np.any(column[:, number]):
                        named = {axis: self.names[axis][n] for axis, n in zip(axes, names, strict=True)}
                        places.append(replace(Place(item=item), **named))
                        columns.append(column[:, number])
        return places, np.stack(columns, axis=1) if columns else np.zeros((self.figures, 0))


def figure_table(claims: Sequence[Claim], figures: Sequence[Figure], arms: Arms) -> FigureTable:
    """The claims' figures, which all have weights."""
    pieces: list[tuple[int, str, tuple[str, str], Array, Array]] = []
    for number, figure in enumerate(figures):
        assert figure.weights is not None
        pieces += [(number, figure.weights.arm, column, *cells) for column, cells in figure.weights.parts.items()]
    lengths = [len(rows) for *_, rows, _ in pieces]
    weight = np.concatenate([w for *_, w in pieces])
    value = np.concatenate([arms[arm].column(*column)[rows] for _, arm, column, rows, _ in pieces])
    names: dict[str, list[str]] = {}
    codes: dict[str, Array] = {}
    for axis in (*AXES, "seed"):
        found, place = np.unique([str(n) for arm in arms.values() for n in arm.names[axis]], return_inverse=True)
        starts = np.cumsum([0, *(len(arm.names[axis]) for arm in arms.values())])
        of_arm = {name: place[start:] for name, start in zip(arms, starts.tolist(), strict=False)}
        codes[axis] = np.concatenate([of_arm[arm][arms[arm].codes[axis][rows]] for _, arm, _, rows, _ in pieces])
        names[axis] = found.tolist()
    found, place = np.unique([item_name(*column) for _, _, column, _, _ in pieces], return_inverse=True)
    names["item"], codes["item"] = found.tolist(), np.repeat(place, lengths)
    seeds = np.array([int(name) for name in names.pop("seed")])
    code = codes["dataset"] * len(seeds) + codes.pop("seed")
    present = np.flatnonzero(np.bincount(code))
    drawn = present[seeds[present % len(seeds)] >= 0]
    number = np.full(present.max() + 1, -1)
    number[drawn] = np.arange(len(drawn))
    draw, home = number[code], drawn // len(seeds)
    entries = Entries(np.repeat([p[0] for p in pieces], lengths), weight, codes, names, draw, len(figures))
    return FigureTable(
        [claim.id for claim in claims],
        np.array([figure.value for figure in figures]),
        entries.sums(draw, len(home), weight * value),
        entries.sums(draw, len(home), np.abs(weight)) > 0,
        home,
        names["dataset"],
        entries,
    )


def item_name(name: str, measure: str) -> str:
    """A method for its accuracy, `ratio of` a method, or another quantity of the cell."""
    if measure == "ratio":
        return f"ratio of {name}"
    return f"quantity {name}" if "." in name or name in ("share", "d2", "v") else name
