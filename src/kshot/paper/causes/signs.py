"""Signs of a fault that no luck of the draws gives: copies, coarse grids, stray records, changes without draws."""

from dataclasses import replace
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.paper.causes.cause import EVERYWHERE, Cause
from kshot.paper.causes.cells import AXES, CellPair, Cube
from kshot.types import Array

# Entries that must be alike, and the share of those that differ in the other run, before they are called copies.
FEWEST, ALIKE = 15, 0.9
# Of the other run's variance over draws, what counts as none.
SAME = 1e-6
# What no draw changes may differ by this much through rounding; the share of cells that a name must explain.
ROUNDING, SHARE = 0.1, 0.8
# Standard deviations between a stray record and the other draws of its cell; how often it is the widest range of the
# other run's draws, which are at least so many.
STRAY, FARTHER, LEAST_DRAWS = 15.0, 3.0, 3
RATIO_GRIDS, POINT_GRIDS = (1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0), (0.5, 1.0, 2.0, 5.0)


def _places(
    cells: CellPair, shown: Bool[Array, "d b t k m"], asked: Bool[Array, "d b t k m"], share: float = ALIKE
) -> list[tuple[dict[str, str], Bool[Array, " N"]]]:
    """Where a sign is, with the entries there: everywhere, or the names of one axis, or the pairs of names under which
    most of the entries that could show it do."""
    axes = (*AXES, "method")
    names, codes = [cells.labels[axis] for axis in axes], [cells.codes[axis] for axis in axes]
    if (shown & asked).sum() < FEWEST:
        return []
    for count in range(3):
        places = []
        for chosen in combinations(range(len(axes)), count):
            others = tuple(set(range(len(axes))) - set(chosen))
            number = asked.sum(axis=others)
            found = np.argwhere((number >= FEWEST) & ((shown & asked).sum(axis=others) > share * number))
            # Names of one axis are said together.
            for group in [found] if len(found) > 0 and count < 2 else found[:, None]:
                mask = np.ones(len(cells.difference), bool)
                for axis, numbers in zip(chosen, group.T, strict=True):
                    mask &= np.isin(codes[axis], numbers)
                said = [
                    ", ".join(names[axis][n] for n in numbers) for axis, numbers in zip(chosen, group.T, strict=True)
                ]
                places.append((dict(zip([axes[axis] for axis in chosen], said, strict=True)), mask))
        if places:
            # Of axes that each show it, the one on which it is most.
            return places if count == 2 else [max(places, key=lambda place: place[1].sum())]
    return []


def repeated_draws(cells: CellPair) -> list[Cause]:
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


def copies(cells: CellPair) -> list[Cause]:
    """An encoder, tier, shot count or method whose accuracies are those of another, where the other run's differ."""
    ours, theirs = cells.means
    found: list[Cause] = []
    for number, axis in enumerate((*AXES[1:], "method"), start=1):
        names = cells.labels[axis]
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
                    mask &= cells.codes[axis] == copy
                    found.append(Cause("copy", where, detail=f"the same as {names[source]}", cells=mask))
    return found


def same_in_every_draw(cells: CellPair) -> list[Cause]:
    """What does not vary with the draws, where the other run's does."""
    ours, theirs = cells.draw_variance
    places = _places(cells, ours <= SAME * theirs, cells.comparable & (theirs > 1e-12))
    said = "the same in every draw"
    return [Cause("variation", where or EVERYWHERE, detail=said, cells=mask) for where, mask in places]


def varies_without_reason(cells: CellPair) -> list[Cause]:
    """What varies with the draws though no draw changes it in the other run, such as zero-shot accuracy."""
    ours, theirs = cells.draw_variance
    places = _places(cells, ours > ROUNDING**2, cells.comparable & (theirs < 1e-12), SHARE)
    said = "not the same in every draw, as it should be"
    return [Cause("variation", where or EVERYWHERE, detail=said, cells=mask) for where, mask in places]


def coarse_grids(cells: CellPair) -> list[Cause]:
    """Chosen ratios, or accuracies, on a coarser grid than the other run's."""
    found = []
    for part, grids in ((np.s_[len(cells.methods) :], RATIO_GRIDS), (np.s_[: len(cells.methods)], POINT_GRIDS)):
        ours, theirs = (cube.values[..., part] for cube in (cells.ours, cells.theirs))
        known = np.isfinite(ours).any(axis=4) & np.isfinite(theirs).any(axis=4)
        for grid in sorted(grids, reverse=True):
            off, other = (np.nan_to_num(np.abs(v - grid * np.round(v / grid))).max(axis=4) for v in (ours, theirs))
            places = _places(cells, off < 1e-2, known & (other > 1e-2))
            step = f"ratios on a grid of {grid / 100:g}" if grids is RATIO_GRIDS else f"rounded to {grid:g} points"
            found += [Cause("grid", where or EVERYWHERE, detail=step) for where, _ in places]
            if places:
                break
    return found


def _equal(a: Array, b: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.abs(a - b) < 1e-9


def _mean_of(values: Float[Array, " N"], group: Int[Array, " N"]) -> Float[Array, " N"]:
    """The mean of each entry's group."""
    return (np.bincount(group, values) / np.maximum(np.bincount(group), 1))[group]


def stray_records(cells: CellPair) -> tuple[list[Cause], CellPair]:
    """Single records far from the other draws of their cell, such as failures that were written as zero; and the pair
    without them."""
    ours, theirs = (np.moveaxis(cube.values, 4, 0)[:, cells.known] for cube in (cells.ours, cells.theirs))
    if len(theirs) < LEAST_DRAWS:
        return [], cells
    c = cells.codes
    # Five draws of one cell can be close by chance: no noise is below that of the same K and method in all datasets.
    variance = (cells.theirs.residues**2).sum(axis=4)[cells.known] * np.isfinite(theirs).sum(axis=0)
    by_method = c["shots"] * len(cells.items) + c["item"]
    varied = variance[variance > 1e-12]
    floor = np.full(len(variance), np.median(varied) if len(varied) else 1.0)
    scale = np.sqrt(np.maximum.reduce([_mean_of(variance, cells.noise_group), _mean_of(variance, by_method), floor]))
    apart = np.nan_to_num(np.abs(ours - np.nanmedian(ours, axis=0))) / scale
    usual = (np.nanmax(theirs, axis=0) - np.nanmin(theirs, axis=0)) / scale
    farthest = np.array([usual[c["item"] == item].max(initial=0) for item in range(len(cells.items))])[c["item"]]
    draws, at = np.nonzero(cells.is_accuracy & (apart > np.maximum(STRAY, FARTHER * farthest)))
    if not len(at):
        return [], cells
    names = {**cells.labels, "seed": [f"draw {draw}" for draw in range(len(ours))]}
    codes = {axis: draws if axis == "seed" else c[axis][at] for axis in names}
    shared = {axis: names[axis][found[0]] for axis, found in codes.items() if (found == found[0]).all()}
    number = f"{len(at)} records" if len(at) > 1 else "a record"
    said = f"{number} far from the other draws of the cell, such as {ours[draws[0], at[0]]:.1f}"
    gain = float((apart[draws, at] ** 2).sum())
    values = cells.ours.values.copy()
    values[(*(c[axis][at] for axis in AXES), draws, c["item"][at])] = np.nan
    where, mask = shared or EVERYWHERE, np.isin(np.arange(len(variance)), at)
    return [Cause("stray", where, gain=gain, detail=said, cells=mask)], replace(cells, ours=Cube(values))


def unmoved(cells: CellPair) -> Bool[Array, " N"]:
    """The accuracies that no draw changes, such as zero-shot accuracy."""
    return cells.is_accuracy & ((cells.factors**2).sum(axis=1) < 1e-12)


def changed_without_draws(cells: CellPair) -> Cause | None:
    """The name under which accuracies that no draw changes differ all the same: zero-shot accuracy shows whose features
    or test pictures are others, even where some rise and some fall."""
    still, apart = (np.zeros(cells.known.shape, bool) for _ in range(2))
    still[cells.known] = unmoved(cells)
    apart[cells.known] = np.abs(cells.difference) > ROUNDING
    m = len(cells.methods)
    for where, here in _places(cells, apart[..., :m], still[..., :m], SHARE):
        mask = here & cells.is_accuracy
        size = float(cells.difference[mask & still[cells.known]].mean())
        return Cause("changed", where or EVERYWHERE, size, cells=mask)
    return None
