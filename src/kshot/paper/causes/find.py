"""What explains the difference of two runs: plain signs first, then the smallest names whose cells deviate."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kshot.paper.causes.cause import EVERYWHERE, Cause
from kshot.paper.causes.cells import CellPair, Cube
from kshot.paper.causes.draws import odd_draws, spreads
from kshot.paper.causes.shifts import WITH_SHOTS, best_shift
from kshot.paper.causes.signs import (
    ROUNDING,
    SHARE,
    changed_without_draws,
    coarse_grids,
    copies,
    repeated_draws,
    same_in_every_draw,
    stray_records,
    unmoved,
    varies_without_reason,
)

# How many shifts are fitted, one after the other, and how many causes are told.
MOST_SHIFTS, MOST_CAUSES = 6, 3


def find_causes(cells: CellPair) -> list[Cause]:
    """What explains the difference of two runs, best first; empty where chance does."""
    # A draw that lies apart shifts every mean a little, so that it comes before shifts.
    stray, cells = stray_records(cells)
    plain = _gathered(cells, _signs(cells))
    rest = _without_repeated(cells, plain)
    for cause in plain:
        rest = _without(rest, cause)
    shifts: list[Cause] = []
    while len(shifts) < MOST_SHIFTS and rest.ours.values.shape[4] > 1:
        found = _seen_without_draws(rest, best_shift(rest))
        if found is None:
            break
        shifts.append(found)
        rest = _without(rest, found)
    shifts = _gathered(cells, shifts)[:MOST_CAUSES]
    wide = [] if plain else spreads(cells)[:MOST_CAUSES]
    # The one that is further beyond chance comes first.
    ahead = wide and (not shifts or abs(wide[0].score) > abs(shifts[0].score))
    causes = [*wide, *shifts] if ahead else [*plain, *shifts]
    # Stray records under a name that is a cause by itself are a part of it.
    stray = [one for one in stray if not any(cause.where.items() <= one.where.items() for cause in causes)]
    ahead = stray and (not causes or stray[0].gain > causes[0].gain)
    return [*stray, *causes] if ahead else [*causes, *stray]


def _signs(cells: CellPair) -> list[Cause]:
    """What is plain without a fit."""
    grids = coarse_grids(cells)
    # Coarse accuracies are equal by chance.
    if any("points" in cause.detail for cause in grids):
        return grids
    found = [*same_in_every_draw(cells), *repeated_draws(cells), *copies(cells), *grids, *odd_draws(cells)]
    return found or varies_without_reason(cells)


def _gathered(cells: CellPair, causes: list[Cause]) -> list[Cause]:
    """Causes of one kind in different cells that share names are one, with these names; shifts of most names of an axis
    are one in every cell."""
    alike = [one for one in causes if one.kind == causes[0].kind in ("shift", "copy")]
    others = [one.where.items() for one in alike if one.where != causes[0].where]
    shared = max((causes[0].where.items() & where for where in others), key=len, default=set())
    members = [one for one in alike if shared <= one.where.items()]
    if not shared:
        members = [one for one in members if one.where.keys() == causes[0].where.keys()]
        axis = next(iter(members[0].where)) if members and len(members[0].where) == 1 else ""
        if len(members) < 2 or axis not in cells.names or 2 * len(members) <= len(cells.names[axis]):
            return causes
    elif len(members) < 2:
        return causes
    names = [" × ".join(name for pair, name in one.where.items() if (pair, name) not in shared) for one in members]
    what = [one.detail if one.kind == "copy" else f"{one.size:+.2f}" for one in members]
    whole = replace(
        members[0],
        where={a: n for a, n in causes[0].where.items() if (a, n) in shared} or EVERYWHERE,
        size=float(np.mean([one.size for one in members])),
        gain=sum(one.gain for one in members),
        detail="; ".join(f"{a or 'elsewhere'} {b}" for a, b in zip(names[:MOST_CAUSES], what, strict=False)),
        cells=np.logical_or.reduce([one.cells for one in members if one.cells is not None]),
    )
    return [whole, *(one for one in causes if not any(one is member for member in members))]


def _seen_without_draws(cells: CellPair, found: Cause | None) -> Cause | None:
    """The cause by what no draw changes: the name under which it differs, where the fit found nothing or only a part of
    it; the methods that use shots, where it is the same in all of the cause."""
    still = unmoved(cells)
    changed = changed_without_draws(cells)
    cells_of = {(axis, name) for axis, name in found.where.items() if axis != "method"} if found else set()
    if changed is not None and (found is None or changed.where.items() < cells_of):
        return changed
    if found is None or found.cells is None or "method" in found.where or not (found.cells & still).any():
        return found
    if (np.abs(cells.difference[found.cells & still]) > ROUNDING).mean() > 1 - SHARE:
        return found
    where = {axis: name for axis, name in found.where.items() if axis != "cells"}
    return replace(found, where={**where, "method": WITH_SHOTS})


def _without_repeated(cells: CellPair, causes: Sequence[Cause]) -> CellPair:
    """The pair without draws that repeat others: they would show too little noise."""
    repeated = {cause.where["seed"] for cause in causes if cause.kind == "repeated draw"}
    kept = [draw for draw in range(cells.ours.values.shape[4]) if f"draw {draw}" not in repeated]
    if not repeated:
        return cells
    return replace(cells, ours=Cube(cells.ours.values[:, :, :, :, kept]), paired=False)


def _without(cells: CellPair, cause: Cause) -> CellPair:
    """The pair with the other run's means where the cause is."""
    if cause.cells is None:
        return cells
    values = cells.ours.values.copy()
    change = np.zeros(cells.known.shape)
    change[cells.known] = np.where(cause.cells, cells.difference, 0)
    return replace(cells, ours=Cube(values - change[:, :, :, :, None]))
