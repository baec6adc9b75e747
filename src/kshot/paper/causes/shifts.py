"""The smallest explanation of a difference between two runs: the cells that deviate, fitted by name."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.paper.causes.cause import Cause
from kshot.paper.causes.cells import AXES, CellPair
from kshot.paper.causes.exchanges import best_exchange
from kshot.paper.causes.fit import fit
from kshot.stats.scores import normal_level
from kshot.types import Array

# False alarms; with exchanges, draws and spreads one in 100 comparisons.
LEVEL = 0.004
# A narrower explanation must explain this much more.
NARROWER = 1.3
# The score from which a wider or another shift on the same cells may be the better explanation.
PLAUSIBLE = 3.0
# The score from which on a method's shift has a shape.
SHAPE = 4.0
GROUPS: Mapping[str, tuple[str, ...]] = {
    "the methods that choose by leave-one-out": ("loo_blend", "loo_blend_kcorr", "gda_alpha_loo"),
    "the GDA heads": ("gda_alpha1", "gda_alpha_loo", "gda_alpha_val"),
    "the blends": ("js_blend", "centred_js_blend", "loo_blend", "loo_blend_kcorr", "oracle_lambda", "mse_oracle"),
    "the methods that see test labels": ("oracle_lambda", "tip_adapter_test"),
}
WITH_SHOTS = "the methods that use shots"


def _labels(cells: CellPair) -> Iterator[tuple[str, Int[Array, " N"], list[str]]]:
    """Ways to sort the entries: an axis, the number of each entry on it (−1: none), the names of the numbers."""
    accuracy, codes = cells.is_accuracy, cells.codes
    for axis in AXES:
        yield axis, np.where(accuracy, codes[axis], -1), cells.labels[axis]
    yield "cells", np.where(accuracy, 0, -1), ["every cell"]
    yield "method", np.where(accuracy, codes["method"], -1), cells.methods
    yield "method", np.where(accuracy, -1, codes["method"]), [f"{method}'s ratio" for method in cells.methods]
    groups = {**GROUPS, WITH_SHOTS: tuple({*cells.methods} - {"zero_shot"})}
    for name, members in groups.items():
        member = np.isin(cells.methods, members)
        if member.sum() > 1:
            yield "method", np.where(member[codes["method"]] & accuracy, 0, -1), [name]


def best_shift(cells: CellPair) -> Cause | None:
    """The shift or the exchange that explains most, of those beyond chance."""
    solved = cells.solve(cells.difference)
    labels = list(_labels(cells))
    pairs = [(a, b) for a, b in combinations(labels, 2) if a[0] != b[0] and "cells" not in (a[0], b[0])]
    fits, tests = [], 0
    for sorting in (*((one,) for one in labels), *pairs):
        code, count = np.zeros(len(solved), int), 1
        valid = np.ones(len(solved), bool)
        for _, codes, names in sorting:
            code, count, valid = code * len(names) + codes, count * len(names), valid & (codes >= 0)
        found = fit(cells, solved, np.where(valid, code, -1), count)
        tests += int((found.gain > 0).sum())
        fits.append((sorting, np.where(valid, code, -1), found))
    best, beyond = None, _beyond(fits, normal_level(LEVEL, tests))
    for sorting, code, found in fits if beyond is not None else ():
        # Related to what is beyond chance, and plausible by itself.
        related = np.bincount(code[beyond] + 1, minlength=len(found.gain) + 1)[1:] > 0
        gain = np.where(related & (np.abs(found.score) > PLAUSIBLE), found.gain, 0)
        top = int(np.argmax(gain))
        # Single names come first.
        if gain[top] > 0 and (best is None or gain[top] > best[0] * (NARROWER if len(sorting) > len(best[2]) else 1)):
            best = (gain[top], found.score[top], sorting, code == top)
    swap = best_exchange(cells, solved)
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


def _narrowed(cells: CellPair, solved: Float[Array, " N"], labels: Sequence, cause: Cause) -> Cause:
    """The cause on fewer cells, where one more name explains clearly more."""
    assert cause.cells is not None
    for axis, codes, names in labels:
        if axis in cause.where or axis == "cells":
            continue
        code = np.where(cause.cells, codes, -1)
        found = fit(cells, solved, code, len(names))
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
    if "zero_shot" in cells.methods:
        at = tuple(cells.codes[axis][mask] for axis in AXES)
        text = cells.means[1][..., cells.methods.index("zero_shot")][at]
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
