"""Signs of a fault that no luck of the draws gives: copies, coarse grids, odd draws, spreads, changes without draws."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float

from kshot.paper.cause import Cause
from kshot.paper.cells import AXES, CellPair, Cube
from kshot.stats.scores import normal_level, normal_score
from kshot.types import Array

# False alarms of the looks at spreads and at single draws, together with the scan: one in 100 comparisons.
LOOK_LEVEL = 0.0025
LEAST_DRAWS = 3
# Entries that must be alike, and the share of those that differ in the other run, before they are called copies.
FEWEST, ALIKE = 15, 0.9
# Of the other run's variance over draws, what counts as none.
SAME = 1e-6
# What no draw changes may differ by this much through rounding; the share of cells that a name must explain.
ROUNDING, SHARE = 0.1, 0.8
# Standard deviations between a stray record and the other draws of its cell, and how often those of the other run's
# farthest.
STRAY, FARTHER = 10.0, 2.0
RATIO_GRIDS, POINT_GRIDS = (1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0), (0.5, 1.0, 2.0, 5.0)


def signs(cells: CellPair) -> list[Cause]:
    """What is plain without a fit."""
    grids = _grids(cells)
    # Coarse accuracies are equal by chance.
    if any("points" in cause.detail for cause in grids):
        return grids
    found = [*_same_in_every_draw(cells), *_repeated_draws(cells), *_copies(cells), *grids, *odd_draws(cells)]
    return found or _varies_without_reason(cells)


def _places(
    cells: CellPair, shown: Bool[Array, "d b t k m"], asked: Bool[Array, "d b t k m"], share: float = ALIKE
) -> list[tuple[dict[str, str], Bool[Array, " N"]]]:
    """Where a sign is, with the entries there: everywhere, or the names of one axis, or the pairs of names under which
    most of the entries that could show it do."""
    axes = (*AXES, "method")
    names = [[_name(axis, name) for name in cells.names[axis]] for axis in AXES] + [cells.methods]
    codes = [cells.codes[axis] for axis in AXES] + [cells.codes["item"] % len(cells.methods)]
    if (shown & asked).sum() < FEWEST:
        return []
    for count in range(3):
        places = []
        for chosen in combinations(range(len(axes)), count):
            others = tuple(set(range(len(axes))) - set(chosen))
            number = asked.sum(axis=others)
            found = np.argwhere((number >= FEWEST) & ((shown & asked).sum(axis=others) > share * number))
            if len(found) and count < 2:
                where = {axes[axis]: ", ".join(names[axis][one[0]] for one in found) for axis in chosen}
                places.append((where, np.all([np.isin(codes[axis], found) for axis in chosen], axis=0)))
            elif len(found):
                places += [
                    (
                        {axes[axis]: names[axis][one] for axis, one in zip(chosen, pair, strict=True)},
                        np.all([codes[axis] == one for axis, one in zip(chosen, pair, strict=True)], axis=0),
                    )
                    for pair in found
                ]
        if places:
            # Of axes that each show it, the one on which it is most.
            return places if count == 2 else [max(places, key=lambda place: place[1].sum())]
    return []


def _repeated_draws(cells: CellPair) -> list[Cause]:
    """Draws that are the same in our run and not in the other, one cause for each that is repeated."""
    ours, theirs = cells.accuracies
    own, other = cells.draw_variance
    vary = cells.comparable & (other > 1e-12) & (own > SAME * other)
    causes: list[Cause] = []
    for first, second in combinations(range(ours.shape[4]), 2):
        a, b = ours[:, :, :, :, first], ours[:, :, :, :, second]
        asked = vary & np.isfinite(a) & np.isfinite(b) & (a < 100)
        if first < theirs.shape[4] > second:
            asked &= theirs[:, :, :, :, first] != theirs[:, :, :, :, second]
        for where, _ in _places(cells, _equal(a, b), asked):
            where = {**where, "seed": f"draw {second}"}
            if not any(where == known.where for known in causes):
                causes.append(Cause("repeated draw", where, detail=f"the same as draw {first}"))
    return causes


def _copies(cells: CellPair) -> list[Cause]:
    """An encoder, tier, shot count or method whose accuracies are those of another, where the other run's differ."""
    ours, theirs = (cube.mean[..., : len(cells.methods)] for cube in (cells.ours, cells.theirs))
    found: list[Cause] = []
    for number, axis in enumerate((*AXES[1:], "method"), start=1):
        names = cells.methods if axis == "method" else [_name(axis, name) for name in cells.names[axis]]
        for pair in combinations(range(len(names)), 2):
            a, b, c, d = (np.take(mean, [at], axis=number) for mean in (ours, theirs) for at in pair)
            told = cells.comparable.any(axis=number, keepdims=True) & np.isfinite(a + b + c + d) & (a < 100)
            asked, alike = told & ~_equal(c, d), _equal(a, b)
            if (asked & alike).sum() < FEWEST:
                continue
            # The one further from its counterpart is the copy.
            off = [np.abs(x - y)[asked & alike].mean() for x, y in ((a, c), (b, d))]
            copy, source = pair if off[0] > off[1] else pair[::-1]
            here = np.arange(len(names)).reshape([-1 if at == number else 1 for at in range(5)]) == copy
            for where, mask in _places(cells, alike & here, asked & here):
                where = {**where, axis: names[copy]}
                if not any(where == known.where for known in found):
                    code = cells.codes["item"] % len(names) if axis == "method" else cells.codes[axis]
                    detail = f"the same as {names[source]}"
                    found.append(Cause("copy", where, detail=detail, cells=mask & (code == copy)))
    return found


def _same_in_every_draw(cells: CellPair) -> list[Cause]:
    ours, theirs = cells.draw_variance
    places = _places(cells, ours <= SAME * theirs, cells.comparable & (theirs > 1e-12))
    said = "the same in every draw"
    return [Cause("draws", where or {"cells": "every cell"}, detail=said, cells=mask) for where, mask in places]


def _varies_without_reason(cells: CellPair) -> list[Cause]:
    """What no draw changes in the other run, as zero-shot accuracy."""
    ours, theirs = cells.draw_variance
    places = _places(cells, ours > ROUNDING**2, cells.comparable & (theirs < 1e-12), SHARE)
    said = "not the same in every draw, as it should be"
    return [Cause("draws", where or {"cells": "every cell"}, detail=said, cells=mask) for where, mask in places]


def _grids(cells: CellPair) -> list[Cause]:
    """Chosen ratios, or accuracies, on a coarser grid than the other run's."""
    found = []
    for part, grids in ((np.s_[len(cells.methods) :], RATIO_GRIDS), (np.s_[: len(cells.methods)], POINT_GRIDS)):
        ours, theirs = (cube.values[..., part] for cube in (cells.ours, cells.theirs))
        known = np.isfinite(ours).any(axis=4) & np.isfinite(theirs).any(axis=4)
        for grid in sorted(grids, reverse=True):
            off, other = (np.nan_to_num(np.abs(v - grid * np.round(v / grid))).max(axis=4) for v in (ours, theirs))
            places = _places(cells, off < 1e-2, known & (other > 1e-2))
            step = f"ratios on a grid of {grid / 100:g}" if grids is RATIO_GRIDS else f"rounded to {grid:g} points"
            found += [Cause("grid", where or {"cells": "every cell"}, detail=step) for where, _ in places]
            if places:
                break
    return found


def _equal(a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.abs(a - b) < 1e-9


def stray_records(cells: CellPair) -> tuple[list[Cause], CellPair]:
    """Single records far from the other draws of their cell, such as failures that were written as zero; and the pair
    without them."""
    ours, theirs = (np.moveaxis(cube.values, 4, 0)[:, cells.known] for cube in (cells.ours, cells.theirs))
    c = cells.codes
    group = (c["dataset"] * len(cells.names["shots"]) + c["shots"]) * len(cells.items) + c["item"]
    centred = [values - np.nanmedian(values, axis=0) for values in (ours, theirs)]
    variance = np.bincount(group, np.nanmean(centred[1] ** 2, axis=0)) / np.maximum(np.bincount(group), 1)
    varied = variance[variance > 1e-12]
    scale = np.sqrt(np.maximum(variance, np.median(varied) if len(varied) else 1e-12))[group]
    apart, usual = (np.nan_to_num(np.abs(side)) / scale for side in centred)
    farthest = np.array([usual[:, c["item"] == item].max(initial=0) for item in range(len(cells.items))])
    accuracy = np.array([measure == "accuracy" for _, measure in cells.items])[c["item"]]
    draws, at = np.nonzero(accuracy & (apart > np.maximum(STRAY, FARTHER * farthest[c["item"]])))
    if not len(at):
        return [], cells
    names = {axis: [_name(axis, name) for name in cells.names[axis]] for axis in AXES}
    names |= {"item": [method for method, _ in cells.items], "seed": [f"draw {draw}" for draw in range(len(ours))]}
    codes = {axis: draws if axis == "seed" else c[axis][at] for axis in names}
    shared = {axis: names[axis][found[0]] for axis, found in codes.items() if (found == found[0]).all()}
    where = {axis.replace("item", "method"): name for axis, name in shared.items()} or {"cells": "every cell"}
    said = f"{len(at)} records far from the other draws of their cells, such as {ours[draws[0], at[0]]:.1f}"
    gain = float((apart[draws, at] ** 2).sum())
    values = cells.ours.values.copy()
    values[(*(c[axis][at] for axis in AXES), draws, c["item"][at])] = np.nan
    cause = Cause("stray", where, gain=gain, detail=said, cells=np.isin(np.arange(len(group)), at))
    return [cause], replace(cells, ours=Cube(values))


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
            if abs(score) > normal_level(LOOK_LEVEL / 2, len(subsets) * len(groups)):
                size = float(np.mean(row * scale[here]))
                named = " and ".join(f"draw {draw}" for draw in subset)
                yield Cause("draw", {"seed": named, **where}, size, score, score**2, f"{size:+.2f} points off")


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


def unmoved(cells: CellPair) -> Bool[Array, " N"]:
    """The accuracies that no draw changes, such as zero-shot accuracy."""
    accuracy = np.array([kind == "accuracy" for _, kind in cells.items])[cells.codes["item"]]
    return accuracy & ((cells.factors**2).sum(axis=1) < 1e-12)


def changed_without_draws(cells: CellPair) -> Cause | None:
    """The name under which accuracies that no draw changes differ all the same: zero-shot accuracy shows whose features
    or test pictures are others, even where some rise and some fall."""
    still, apart = (np.zeros(cells.known.shape, bool) for _ in range(2))
    still[cells.known] = unmoved(cells)
    apart[cells.known] = np.abs(cells.difference) > ROUNDING
    m = len(cells.methods)
    for where, here in _places(cells, apart[..., :m], still[..., :m], SHARE):
        mask = here & (cells.codes["item"] < m)
        size = float(cells.difference[mask & still[cells.known]].mean())
        return Cause("changed", where or {"cells": "every cell"}, size, cells=mask)
    return None


def _name(axis: str, name: object) -> str:
    return f"K = {name}" if axis == "shots" else str(name)
