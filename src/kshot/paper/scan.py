"""The smallest explanation of a difference between two runs: the cells that deviate, fitted by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.paper.cause import Cause
from kshot.paper.cells import AXES, CellPair, Cube
from kshot.paper.looks import ROUNDING, SHARE, changed_without_draws, signs, spreads, stray_records, unmoved
from kshot.stats.scores import normal_level, normal_score
from kshot.types import Array

# False alarms of the fits of shifts and of exchanges; with the looks one in 100 comparisons.
SHIFT_LEVEL, SWAP_LEVEL = 0.004, 0.001
# How many shifts are fitted, one after the other, and how many causes are told.
MOST_SHIFTS, MOST_CAUSES = 6, 3
# A narrower explanation must explain this much more.
NARROWER = 1.3
# The score from which a wider or another shift on the same cells may be the better explanation.
PLAUSIBLE = 3.0
# The share of an exchange that must be seen; and from which score on a method's shift has a shape.
SWAPPED, SHAPE = (0.6, 1.5), 4.0
# Points that the precision of arithmetic may move an accuracy, on which no draw has an influence.
PRECISION = 0.02
GROUPS: Mapping[str, tuple[str, ...]] = {
    "the methods that choose by leave-one-out": ("loo_blend", "loo_blend_kcorr", "gda_alpha_loo"),
    "the GDA heads": ("gda_alpha1", "gda_alpha_loo", "gda_alpha_val"),
    "the blends": ("js_blend", "centred_js_blend", "loo_blend", "loo_blend_kcorr", "oracle_lambda", "mse_oracle"),
    "the methods that see test labels": ("oracle_lambda", "tip_adapter_test"),
}
WITH_SHOTS = "the methods that use shots"


class Fit(NamedTuple):
    """By code the multiple of a pattern: the drop of the squares when it is taken out, its normal score by the noise of
    draws alone, and the multiple by the whole covariance."""

    gain: Float[Array, " c"]
    score: Float[Array, " c"]
    size: Float[Array, " c"]


def find_causes(cells: CellPair) -> list[Cause]:
    """What explains the difference of two runs, best first; empty where chance does."""
    # A draw that lies apart shifts every mean a little, so that it comes before shifts.
    stray, cells = stray_records(cells)
    plain = _gathered(cells, signs(cells))
    rest = _without_repeated(cells, plain)
    for cause in plain:
        rest = _without(rest, cause)
    shifts: list[Cause] = []
    while len(shifts) < MOST_SHIFTS and rest.ours.values.shape[4] > 1:
        found = _seen_without_draws(rest, _best(rest))
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


def _gathered(cells: CellPair, causes: list[Cause]) -> list[Cause]:
    """Causes of one kind in different cells that share names are one, with these names; shifts of most names of an axis
    are one in every cell."""
    alike = [one for one in causes if one.kind == causes[0].kind in ("shift", "copy")]
    others = [one.where.items() for one in alike if one.where != causes[0].where]
    shared = max((causes[0].where.items() & where for where in others), key=len, default=set())
    members = [one for one in alike if shared <= one.where.items()]
    if not shared:
        members = [one for one in members if one.where.keys() == causes[0].where.keys()]
        axis = next(iter(members[0].where)) if members else ""
        if len(members) < 2 or len(members[0].where) > 1 or 2 * len(members) <= len(cells.names.get(axis, ())):
            return causes
    elif len(members) < 2:
        return causes
    names = [" × ".join(name for pair, name in one.where.items() if (pair, name) not in shared) for one in members]
    what = [one.detail if one.kind == "copy" else f"{one.size:+.2f}" for one in members]
    whole = replace(
        members[0],
        where={a: n for a, n in causes[0].where.items() if (a, n) in shared} or {"cells": "every cell"},
        size=float(np.mean([one.size for one in members])),
        gain=sum(one.gain for one in members),
        detail="; ".join(f"{a or 'elsewhere'} {b}" for a, b in zip(names[:MOST_CAUSES], what, strict=False)),
        cells=np.logical_or.reduce([one.cells for one in members]),
    )
    return [whole, *(one for one in causes if not any(one is member for member in members))]


def _seen_without_draws(cells: CellPair, found: Cause | None) -> Cause | None:
    """The cause by what no draw changes: the name under which it differs, where the fit found nothing or only a part of
    it; the methods that use shots, where it is the same in all of the cause."""
    still = unmoved(cells)
    changed = changed_without_draws(cells)
    if changed is not None and (found is None or changed.where.items() < found.where.items() - _methods(found)):
        return changed
    if found is None or found.cells is None or "method" in found.where or not (found.cells & still).any():
        return found
    if (np.abs(cells.difference[found.cells & still]) > ROUNDING).mean() > 1 - SHARE:
        return found
    where = {axis: name for axis, name in found.where.items() if axis != "cells"}
    return replace(found, where={**where, "method": WITH_SHOTS})


def _methods(cause: Cause) -> set[tuple[str, str]]:
    return {(axis, name) for axis, name in cause.where.items() if axis == "method"}


def _labels(cells: CellPair) -> Iterator[tuple[str, Int[Array, " N"], list[str]]]:
    """Ways to sort the entries: an axis, the number of each entry on it (−1: none), the names of the numbers."""
    accuracy = np.array([measure == "accuracy" for _, measure in cells.items])[cells.codes["item"]]
    for axis in AXES:
        names = [f"K = {name}" if axis == "shots" else str(name) for name in cells.names[axis]]
        yield axis, np.where(accuracy, cells.codes[axis], -1), names
    yield "cells", np.where(accuracy, 0, -1), ["every cell"]
    methods = [method for method, _ in cells.items]
    for wanted in ("accuracy", "ratio"):
        here = accuracy if wanted == "accuracy" else ~accuracy
        names = [m if wanted == "accuracy" else f"{m}'s ratio" for m in methods]
        yield "method", np.where(here, cells.codes["item"], -1), names
    present = {method for method, measure in cells.items if measure == "accuracy"}
    groups = {**GROUPS, WITH_SHOTS: tuple(present - {"zero_shot"})}
    for name, members in groups.items():
        if len(present & set(members)) > 1:
            member = np.isin(methods, members)[cells.codes["item"]] & accuracy
            yield "method", np.where(member, 0, -1), [name]


def _best(cells: CellPair) -> Cause | None:
    """The shift or the exchange that explains most, of those beyond chance."""
    solved = cells.solve(cells.difference)
    labels = list(_labels(cells))
    scan = [(one,) for one in labels]
    scan += [
        pair for pair in combinations(labels, 2) if pair[0][0] != pair[1][0] and "cells" not in (pair[0][0], pair[1][0])
    ]
    fits, tests = [], 0
    for sorting in scan:
        code, count = np.zeros(len(solved), int), 1
        valid = np.ones(len(solved), bool)
        for _, codes, names in sorting:
            code, count, valid = code * len(names) + codes, count * len(names), valid & (codes >= 0)
        found = _fit(cells, solved, np.where(valid, code, -1), count)
        tests += int((found.gain > 0).sum())
        fits.append((sorting, np.where(valid, code, -1), found))
    best, beyond = None, _beyond(fits, normal_level(SHIFT_LEVEL, tests))
    for sorting, code, found in fits if beyond is not None else ():
        # Related to what is beyond chance, and plausible by itself.
        related = np.bincount(code[beyond] + 1, minlength=len(found.gain) + 1)[1:] > 0
        gain = np.where(related & (np.abs(found.score) > PLAUSIBLE), found.gain, 0)
        top = int(np.argmax(gain))
        # Single names come first.
        if gain[top] > 0 and (best is None or gain[top] > best[0] * (NARROWER if len(sorting) > len(best[2]) else 1)):
            best = (gain[top], found.score[top], sorting, code == top)
    swap = _best_swap(cells, solved)
    if best is None or (swap is not None and swap.gain > best[0]):
        return swap
    gain, score, sorting, mask = best
    first = np.flatnonzero(mask)[0]
    where = {axis: names[codes[first]] for axis, codes, names in sorting}
    return _narrowed(cells, solved, labels, _shift(cells, where, mask, gain, score))


def _beyond(fits: Sequence, level: float) -> Bool[Array, " N"] | None:
    """The cells of the shift that is furthest beyond chance; None where none is."""
    _, code, found = max(fits, key=lambda one: np.abs(one[2].score).max(initial=0))
    top = int(np.argmax(np.abs(found.score)))
    return code == top if abs(found.score[top]) > level else None


def _fit(
    cells: CellPair,
    solved: Float[Array, " N"],
    code: Int[Array, " N"],
    count: int,
    pattern: Float[Array, " N"] | None = None,
) -> Fit:
    """One multiple of the pattern (one everywhere unless given) per code; a code of −1 is none."""
    at = np.flatnonzero(code >= 0 if pattern is None else (code >= 0) & (pattern != 0))
    code, p = code[at], np.ones(len(at)) if pattern is None else pattern[at]
    G = len(cells.names["dataset"])
    weight = p / cells.variance[at]

    def summed(values: Float[Array, " n"]) -> Float[Array, " c"]:
        return np.bincount(code, values, count).astype(float)

    total = summed(weight * p)
    known = total > 0
    safe = np.where(known, total, 1)
    place = code * G + cells.codes["dataset"][at]
    by_factor = np.stack([np.bincount(place, weight * f, count * G) for f in cells.factors[at].T], axis=1)
    by_factor = by_factor.reshape(count, G, -1)
    shares = (by_factor**2).sum(axis=2) / safe[:, None] ** 2
    variance, square = shares.sum(axis=1), (shares**2).sum(axis=1)
    freedom = cells.freedom * np.where(square > 0, variance**2 / np.where(square > 0, square, 1), 1)
    error = np.sqrt(np.maximum(variance, (PRECISION * summed(np.abs(weight)) / safe) ** 2))
    score = normal_score(summed(weight * cells.difference[at]) / safe / np.where(known, error, 1), freedom)
    along = np.einsum("cgf,gfh->cgh", by_factor, cells.inner)
    curvature = np.maximum(summed(cells.diagonal[at] * p**2) - (along**2).sum(axis=(1, 2)), 1e-12)
    slope = summed(p * solved[at])
    return Fit(np.where(known, slope**2 / curvature, 0), np.where(known, score, 0), slope / curvature)


def _narrowed(cells: CellPair, solved: Float[Array, " N"], labels: Sequence, cause: Cause) -> Cause:
    """The cause on fewer cells, where one more name explains clearly more."""
    assert cause.cells is not None
    for axis, codes, names in labels:
        if axis in cause.where or axis == "cells":
            continue
        code = np.where(cause.cells, codes, -1)
        found = _fit(cells, solved, code, len(names))
        top = int(np.argmax(found.gain))
        if found.gain[top] > NARROWER * cause.gain:
            where = {**{a: n for a, n in cause.where.items() if a != "cells"}, axis: names[top]}
            narrower = _shift(cells, where, code == top, found.gain[top], found.score[top])
            return _narrowed(cells, solved, labels, narrower)
    return cause


def _shift(cells: CellPair, where: Mapping[str, str], mask: Bool[Array, " N"], gain: float, score: float) -> Cause:
    weight = mask / cells.variance
    size = float(weight @ cells.difference / weight.sum())
    detail = "ratio" if where.get("method", "").endswith("'s ratio") else ""
    if set(where) == {"method"} and not detail:
        detail = _shape(cells, mask)
    return Cause("shift", where, size, float(score), float(gain), detail, mask)


def _shape(cells: CellPair, mask: Bool[Array, " N"]) -> str:
    """How a method's shift depends on K and on the text's strength: the terms that are beyond chance."""
    shots = np.log2(np.array(cells.names["shots"], float))[cells.codes["shots"]][mask]
    columns = {"level": np.ones(len(shots)), "slope in K": shots - shots.mean()}
    if ("zero_shot", "accuracy") in cells.items:
        c = {axis: cells.codes[axis][mask] for axis in AXES}
        text = cells.theirs.mean[..., cells.items.index(("zero_shot", "accuracy"))][tuple(c[axis] for axis in AXES)]
        columns["strength of the text"] = np.nan_to_num(text - np.nanmean(text)) / 10
    X, w = np.stack(list(columns.values()), axis=1), 1 / cells.variance[mask]
    if np.linalg.matrix_rank(X) < X.shape[1]:
        return "level"
    solve = np.linalg.solve(X.T @ (w[:, None] * X), (w[:, None] * X).T)
    found = solve @ cells.difference[mask]
    error, datasets = np.zeros(len(found)), cells.codes["dataset"][mask]
    for dataset in np.unique(datasets):
        error += ((solve[:, datasets == dataset] @ cells.factors[mask][datasets == dataset]) ** 2).sum(axis=1)
    score = found / np.sqrt(np.maximum(error, 1e-12))
    units = {"level": "", "slope in K": " a doubling of K", "strength of the text": " for ten points of zero-shot"}
    said = [f"{n} {v:+.2f}{units[n]}" for n, v, z in zip(columns, found, score, strict=True) if abs(z) > SHAPE]
    return "; ".join(said) or "level"


def _best_swap(cells: CellPair, solved: Float[Array, " N"]) -> Cause | None:
    """Two names of an axis exchanged, everywhere or under one name of another axis."""
    methods = [method for method, measure in cells.items if measure == "accuracy"]
    names = {axis: [f"K = {n}" if axis == "shots" else str(n) for n in cells.names[axis]] for axis in AXES}
    names["method"] = methods
    codes = {**{axis: cells.codes[axis] for axis in AXES}, "method": cells.codes["item"] % len(methods)}
    fits, tests = [], 0
    for number, axis in enumerate((*AXES, "method")):
        for order, said in _exchanges(axis, names[axis], cells.theirs.mean.shape[number]):
            pattern = (np.take(cells.theirs.mean, order, axis=number) - cells.theirs.mean)[cells.known]
            pattern = np.nan_to_num(pattern)
            if not pattern.any():
                continue
            everywhere = np.where(pattern != 0, 0, -1)
            for other in ("", *names):
                if other == axis:
                    continue
                code, within = (codes[other], names[other]) if other else (everywhere, [""])
                found = _fit(cells, solved, code, len(within), pattern)
                tests += int((found.gain > 0).sum())
                right = (SWAPPED[0] < found.size) & (found.size < SWAPPED[1])
                for name in np.flatnonzero(right):
                    mask = (pattern != 0) & (code == name)
                    where = {other: within[name], axis: said} if other else {axis: said}
                    fits.append((found.gain[name], found.score[name], where, mask))
    level = normal_level(SWAP_LEVEL, tests)
    best = max((one for one in fits if one[1] > level), key=lambda one: one[0], default=None)
    return None if best is None else Cause("swap", best[2], 0.0, float(best[1]), float(best[0]), cells=best[3])


def _exchanges(axis: str, names: Sequence[str], length: int) -> Iterator[tuple[Int[Array, " n"], str]]:
    """Whose results each name of an axis may hold: two names each other's, every K those of the next."""
    for pair in combinations(range(len(names)), 2):
        order = np.arange(length)
        order[list(pair)] = pair[::-1]
        if axis == "method":
            order[[len(names) + one for one in pair]] = [len(names) + one for one in pair[::-1]]
        yield order, " and ".join(names[one] for one in pair)
    if axis == "shots" and length > 2:
        for step in (1, -1):
            yield np.clip(np.arange(length) + step, 0, length - 1), "every K"


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
