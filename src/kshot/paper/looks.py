"""Signs of a fault that no luck of the draws gives: copies, coarse grids, odd draws, spreads, changes without draws."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Float

from kshot.paper.cause import Cause, listed
from kshot.paper.cells import AXES, CellPair, Cube
from kshot.stats.scores import normal_level, normal_score
from kshot.types import Array

# False alarms of the looks at spreads and at single draws, together with the scan: one in 100 comparisons.
LOOK_LEVEL = 0.0025
LEAST_DRAWS = 3
# Entries that must be alike, and the share of those that differ in the other run, before they are called copies.
FEWEST, ALIKE = 15, 0.9
# What no draw changes may differ by this much through rounding; the share of cells that a name must explain.
ROUNDING, SHARE = 0.1, 0.8
RATIO_GRIDS, POINT_GRIDS = (1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0), (0.5, 1.0, 2.0, 5.0)


def signs(cells: CellPair) -> list[Cause]:
    """What is plain without a fit."""
    repeated = _repeated_draws(cells)
    return [*repeated, *_copies(cells), *([] if repeated else _same_in_all_draws(cells)), *_grids(cells)]


def _alike(a: Array, b: Array, reference: Array) -> tuple[list[int], bool]:
    """The datasets (first axis) in which a equals b nearly everywhere that the reference differs; whether in all that
    can tell."""
    asked = np.isfinite(a) & np.isfinite(b) & reference
    axes = tuple(range(1, asked.ndim))
    number = asked.sum(axis=axes)
    share = (asked & (np.abs(a - b) < 1e-9)).sum(axis=axes) / np.maximum(number, 1)
    told = number >= FEWEST
    found = told & (share > ALIKE)
    return np.flatnonzero(found).tolist(), bool(found.any() and (found == told).all())


def _repeated_draws(cells: CellPair) -> list[Cause]:
    """Draws that are the same in our run, one cause for each that is repeated."""
    ours, theirs = cells.ours.values, cells.theirs.values
    with np.errstate(invalid="ignore"):
        vary = (cells.theirs.residues**2).sum(axis=4) > 1e-12
    causes, copies = [], set()
    for first, second in combinations(range(ours.shape[4]), 2):
        places, _ = _alike(ours[:, :, :, :, first], ours[:, :, :, :, second], vary)
        known = first < theirs.shape[4] > second
        if not places or second in copies:
            continue
        if known and _alike(theirs[:, :, :, :, first], theirs[:, :, :, :, second], vary)[0]:
            continue
        copies.add(second)
        what = f"the same as draw {first} in {listed([cells.names['dataset'][d] for d in places])}"
        causes.append(Cause("repeated draw", {"seed": f"draw {second}"}, detail=what))
    return causes


def _copies(cells: CellPair) -> list[Cause]:
    """An encoder, tier, shot count or method whose accuracies are those of another, where the other run's differ."""
    methods = [method for method, measure in cells.items if measure == "accuracy"]
    ours, theirs = (cube.mean[..., : len(methods)] for cube in (cells.ours, cells.theirs))
    found = []
    for number, axis in enumerate((*AXES[1:], "method"), start=1):
        names = methods if axis == "method" else [_name(axis, name) for name in cells.names[axis]]
        for pair in combinations(range(len(names)), 2):
            a, b, c, d = (np.take(mean, at, axis=number) for mean in (ours, theirs) for at in pair)
            with np.errstate(invalid="ignore"):
                differ = np.abs(c - d) > 1e-9
            places, everywhere = _alike(a, b, differ)
            if places:
                # The one further from its counterpart is the copy.
                off = [np.nanmean(np.abs(x - y)[places]) for x, y in ((a, c), (b, d))]
                copy, source = pair if off[0] > off[1] else pair[::-1]
                datasets = [cells.names["dataset"][place] for place in places]
                where = {axis: names[copy]} if everywhere else {"dataset": listed(datasets), axis: names[copy]}
                codes = cells.codes["item"] % len(methods) if axis == "method" else cells.codes[axis]
                mask = (codes == copy) & np.isin(cells.codes["dataset"], places)
                found.append(Cause("copy", where, detail=f"the same as {names[source]}", cells=mask))
    return found


def _same_in_all_draws(cells: CellPair) -> list[Cause]:
    """A method that does not vary with the draws as it does in the other run."""
    still, vary = (((cube.residues**2).sum(axis=4) > 1e-12) for cube in (cells.ours, cells.theirs))
    known = (np.isfinite(cells.ours.values).sum(axis=4) > 1) & vary
    return [
        Cause("copy", {"method": method}, detail="the same in every draw", cells=cells.codes["item"] == number)
        for number, (method, measure) in enumerate(cells.items)
        if measure == "accuracy"
        and known[..., number].sum() >= FEWEST
        and (known & ~still)[..., number].sum() > ALIKE * known[..., number].sum()
    ]


def _grids(cells: CellPair) -> list[Cause]:
    """Chosen ratios, or accuracies, on a coarser grid than the other run's."""
    found = []
    for measure, grids in (("ratio", RATIO_GRIDS), ("accuracy", POINT_GRIDS)):
        ours, theirs = (_coarsest(cube, cells.items, measure, grids) for cube in (cells.ours, cells.theirs))
        wrong = [m for m in ours if m in theirs and ours[m] > theirs[m]]
        if wrong and measure == "ratio":
            steps = f"ratios on a grid of {ours[wrong[0]] / 100:g} instead of {theirs[wrong[0]] / 100:g}"
            found.append(Cause("grid", {"method": ", ".join(wrong)}, detail=steps))
        elif wrong:
            where = {"cells": "every cell"} if len(wrong) == len(ours) else {"method": ", ".join(wrong)}
            found.append(Cause("grid", where, detail=f"accuracies rounded to {ours[wrong[0]]:g} points"))
    return found


def _coarsest(cube: Cube, items: Sequence[tuple[str, str]], wanted: str, grids: Sequence[float]) -> dict[str, float]:
    """By method the coarsest grid, in hundredths, that holds every value; 0 where none does."""
    coarsest = {}
    for number, (method, measure) in enumerate(items):
        values = cube.values[..., number]
        values = values[np.isfinite(values)]
        if measure == wanted and len(values) >= FEWEST and np.ptp(values) > 0:
            fits = [grid for grid in grids if np.allclose(values / grid, np.round(values / grid), atol=1e-2 / grid)]
            coarsest[method] = max(fits, default=0.0)
    return coarsest


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
    for where, here in groups:
        datasets = cells.codes["dataset"][here]
        sizes = np.bincount(datasets)
        for draw, row in enumerate(residues[:, here]):
            means = (np.bincount(datasets, row) / np.maximum(sizes, 1))[sizes > 0]
            score = _score_of_mean(means)
            if abs(score) > normal_level(LOOK_LEVEL / 2, len(residues) * len(groups)):
                size = float(np.mean(row * scale[here]) * np.sqrt(len(residues) * (len(residues) - 1)))
                what = f"{size:+.2f} points off"
                yield Cause("draw", {"seed": f"draw {draw}", **where}, size, score, score**2, what)


def _apart_in_a_dataset(cells: CellPair) -> Iterator[Cause]:
    """Beside the other draws of both runs there."""
    accuracy = np.array([kind == "accuracy" for _, kind in cells.items])[cells.codes["item"]]
    ours, theirs = (_residues(cells, cube) for cube in (cells.ours, cells.theirs))
    n, m = len(ours), len(theirs)
    if n < LEAST_DRAWS:
        return
    for code, dataset in enumerate(cells.names["dataset"]):
        here = accuracy & (cells.codes["dataset"] == code)
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
            if abs(score) > normal_level(LOOK_LEVEL / 2, n * len(cells.names["dataset"])):
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
        if abs(score) > normal_level(LOOK_LEVEL, len(cells.items)):
            times = float(np.exp(own.mean() / 2))
            what = f"its {measure} varies {times:.2f} times as much over draws"
            found.append(Cause("spread", {"method": method}, times, score, score**2, what))
    return sorted(found, key=lambda cause: -cause.gain)


def _score_of_mean(values: Float[Array, " n"]) -> float:
    """Normal score of the mean of one value a dataset."""
    if len(values) < 3 or not values.std() > 0:
        return 0.0
    return float(normal_score(values.mean() / values.std(ddof=1) * np.sqrt(len(values)), float(len(values) - 1)))


def changed_without_draws(cells: CellPair) -> Cause | None:
    """The name that covers the accuracies that no draw changes and that differ all the same: zero-shot accuracy shows
    whose features or test pictures are others, even where some rise and some fall."""
    accuracy = np.array([kind == "accuracy" for _, kind in cells.items])[cells.codes["item"]]
    still = accuracy & ((cells.factors**2).sum(axis=1) < 1e-12)
    changed = still & (np.abs(cells.difference) > ROUNDING)
    if not changed.any():
        return None
    best: tuple[float, dict[str, str], Array] = (0.0, {}, changed)
    for where, here in _names(cells):
        share = (here & changed).sum() / ((here & still) | changed).sum()
        if share > best[0]:
            best = (share, where, here & accuracy)
    share, where, mask = best
    if share < SHARE:
        return None
    size = float(cells.difference[mask & still].mean())
    return Cause("changed", where, size, cells=mask)


def _names(cells: CellPair) -> Iterator[tuple[dict[str, str], Array]]:
    """Every name, then every pair of names, of the axes of cells."""
    c = cells.codes
    single = [
        ({axis: _name(axis, name)}, c[axis] == code) for axis in AXES for code, name in enumerate(cells.names[axis])
    ]
    yield from single
    for (a, here), (b, there) in combinations(single, 2):
        if a.keys() != b.keys():
            yield {**a, **b}, here & there


def _name(axis: str, name: object) -> str:
    return f"K = {name}" if axis == "shots" else str(name)
