"""Draws that lie apart from the others, and results that vary more or less over draws than the other run's."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from jaxtyping import Float

from kshot.paper.causes.cause import Cause
from kshot.paper.causes.cells import CellPair, Cube
from kshot.stats.scores import normal_level, normal_score
from kshot.types import Array

# False alarms of the looks at spreads and at draws, together with the scan: one in 100 comparisons.
DRAWS_LEVEL = 0.0025
LEAST_DRAWS = 3


def odd_draws(cells: CellPair) -> list[Cause]:
    """A draw that lies apart from the others: in every dataset, for all methods or for one, or in one dataset."""
    found = [*_apart_everywhere(cells), *_apart_in_a_dataset(cells)]
    # One draw apart puts the mean, and so the others, on the other side; a whole draw is one cause.
    return sorted(found, key=lambda cause: (len(cause.where), -abs(cause.size)))[:1]


def _apart_everywhere(cells: CellPair) -> Iterator[Cause]:
    scale = np.sqrt(cells.variance)
    residues = _residues(cells, cells.ours)
    groups: list[tuple[dict[str, str], Array]] = [({}, np.ones(len(scale), bool))]
    groups += [
        ({"method": m}, cells.codes["item"] == i) for i, (m, kind) in enumerate(cells.items) if kind == "accuracy"
    ]
    n = len(residues)
    subsets = [list(subset) for size in range(1, n // 2 + 1) for subset in combinations(range(n), size)]
    for where, here in groups:
        datasets = cells.codes["dataset"][here]
        sizes = np.bincount(datasets)
        for subset in subsets:
            # Beside the mean of the other draws.
            row = residues[subset][:, here].mean(axis=0) * np.sqrt(n * (n - 1)) * n / (n - len(subset))
            means = (np.bincount(datasets, row) / np.maximum(sizes, 1))[sizes > 0]
            score = _score_of_mean(means)
            if abs(score) > normal_level(DRAWS_LEVEL / 2, len(subsets) * len(groups)):
                size = float(np.mean(row * scale[here]))
                named = " and ".join(f"draw {draw}" for draw in subset)
                yield Cause("draw", {"seed": named, **where}, size, score, score**2, f"{size:+.2f} points off")


def _apart_in_a_dataset(cells: CellPair) -> Iterator[Cause]:
    """Beside the other draws of both runs there."""
    ours, theirs = (_residues(cells, cube) for cube in (cells.ours, cells.theirs))
    n, m = len(ours), len(theirs)
    if n < LEAST_DRAWS:
        return
    for code, dataset in enumerate(cells.names["dataset"]):
        here = cells.is_accuracy & (cells.codes["dataset"] == code)
        if not here.any():
            continue
        own = ours[:, here].mean(axis=1) * np.sqrt(n * (n - 1))
        other = theirs[:, here].mean(axis=1) * np.sqrt(m * (m - 1))
        for draw in range(n):
            rest = np.delete(own, draw)
            spread = (((rest - rest.mean()) ** 2).sum() + (other**2).sum()) / (n - 2 + m - 1)
            apart = own[draw] - rest.mean()
            t = apart / np.sqrt(max(spread, 1e-12) * n / (n - 1))
            score = float(normal_score(float(t), float(n + m - 3)))
            if abs(score) > normal_level(DRAWS_LEVEL / 2, n * len(cells.names["dataset"])):
                size = float(
                    (ours[draw, here] * np.sqrt(cells.variance[here])).mean() * np.sqrt(n * (n - 1)) * n / (n - 1)
                )
                where = {"dataset": dataset, "seed": f"draw {draw}"}
                yield Cause("draw", where, size, score, score**2, f"{size:+.2f} points off")


def _residues(cells: CellPair, cube: Cube) -> Float[Array, "s N"]:
    """Of each draw, in units of the noise."""
    return np.moveaxis(cube.residues, 4, 0)[:, cells.known] / np.sqrt(cells.variance)


def spreads(cells: CellPair) -> list[Cause]:
    """A method whose accuracies or ratios vary more or less over draws than the other run's, in every dataset."""
    # Residues are scaled to the mean over draws; runs may have different numbers of them.
    squares = [
        (cube.residues**2 * (cells.known * np.isfinite(cube.values).sum(axis=4))[:, :, :, :, None]).sum(
            axis=(1, 2, 3, 4)
        )
        for cube in (cells.ours, cells.theirs)
    ]
    vary = (squares[0] > 0) & (squares[1] > 0)
    logs = np.where(vary, np.log(np.where(vary, squares[0], 1) / np.where(vary, squares[1], 1)), np.nan)
    found = []
    for number, (method, measure) in enumerate(cells.items):
        own = logs[vary[:, number], number]
        score = _score_of_mean(own)
        if abs(score) > normal_level(DRAWS_LEVEL, len(cells.items)):
            times = float(np.exp(own.mean() / 2))
            what = f"its {measure} varies {times:.2f} times as much over draws"
            found.append(Cause("spread", {"method": method}, times, score, score**2, what))
    return sorted(found, key=lambda cause: -cause.gain)


def _score_of_mean(values: Float[Array, " n"]) -> float:
    """Normal score of the mean of one value a dataset."""
    if len(values) < 3 or not values.std() > 0:
        return 0.0
    return float(normal_score(values.mean() / values.std(ddof=1) * np.sqrt(len(values)), float(len(values) - 1)))
