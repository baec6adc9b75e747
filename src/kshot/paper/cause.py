"""The smallest explanation of a difference between two runs: which cells deviate, and what goes wrong there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.paper.cells import AXES, CellPair, Cube, ratio_grids, repeated_draws
from kshot.stats.scores import normal_level, normal_score
from kshot.types import Array

# False alarms of the scan for shifts, and of the looks at spreads and at single draws: one in 100 comparisons together.
SCAN_LEVEL, LOOK_LEVEL = 0.005, 0.0025
MOST_CAUSES = 3
# A narrower explanation must explain this much more.
NARROWER = 1.3
# The share of an exchange that must be seen; and from which score on a method's shift has a shape.
SWAPPED, SHAPE = (0.6, 1.5), 4.0
GROUPS: Mapping[str, tuple[str, ...]] = {
    "the methods that choose by leave-one-out": ("loo_blend", "loo_blend_kcorr", "gda_alpha_loo"),
    "the GDA heads": ("gda_alpha1", "gda_alpha_loo", "gda_alpha_val"),
    "the blends": ("js_blend", "centred_js_blend", "loo_blend", "loo_blend_kcorr", "oracle_lambda", "mse_oracle"),
    "the methods that see test labels": ("oracle_lambda", "tip_adapter_test"),
}
WITH_SHOTS = "the methods that use shots"
USUAL: Mapping[frozenset[str], str] = {
    frozenset({"dataset"}): "its split, the order of its class names, or its labels",
    frozenset({"backbone"}): "its preprocessing (size, crop, mean), its activation (QuickGELU), or other weights",
    frozenset({"tier"}): "its templates, or normalising each prompt before averaging",
    frozenset({"shots"}): "the support that was drawn for it, or a label of K",
    frozenset({"seed"}): "a draw that was used twice or on other pictures",
    frozenset({"method"}): "a parameter, its default in another version, or what it may choose on",
    frozenset({"dataset", "backbone"}): "a stale or mixed-up feature cache of this stratum",
    frozenset({"dataset", "method"}): "a constant that the method keeps for this dataset",
    frozenset({"dataset", "shots"}): "supports of another draw, or two shot counts mixed up",
    frozenset({"dataset", "tier"}): "prompts or class names of this dataset",
    frozenset({"backbone", "method"}): "a constant of the encoder, such as its logit scale",
    frozenset({"backbone", "tier"}): "text features of this encoder, encoded with other prompts",
    frozenset({"shots", "method"}): "a special case of the method at this shot count",
    frozenset({"tier", "method"}): "which text the method was given",
}


@dataclass(frozen=True)
class Cause:
    """Where two runs differ: `where` names it on its axes; `kind` is shift, swap, repeated draw, grid, spread, draw."""

    kind: str
    where: Mapping[str, str]
    size: float
    score: float
    gain: float = 0.0
    detail: str = ""
    cells: Bool[Array, " N"] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        named = " × ".join(str(name) for name in self.where.values())
        if self.kind == "swap":
            return f"{named}: two are exchanged"
        if self.kind == "shift":
            unit = "hundredths of the ratio" if self.detail == "ratio" else "points"
            return f"{named}, by {self.size:+.2f} {unit}" + (
                f" ({self.detail})" if self.detail not in ("", "ratio") else ""
            )
        return f"{named}: {self.detail}"

    @property
    def usual(self) -> str:
        """What people usually get wrong there."""
        if self.kind == "grid":
            return "the step of the grid that is searched"
        return USUAL.get(frozenset(self.where), "the code or the files behind just these cells")


def find_causes(cells: CellPair) -> list[Cause]:
    """What explains the difference of two runs, best first; empty where chance does."""
    # A draw that lies apart shifts every mean a little, so that it comes before shifts.
    causes = [*_repeated(cells), *_grids(cells), *_odd_draws(cells)]
    rest = cells
    for _ in range(MOST_CAUSES):
        found = _best(rest)
        if found is None:
            break
        causes.append(found)
        rest = _without(rest, found)
    return causes or _spreads(cells)


def _repeated(cells: CellPair) -> list[Cause]:
    known = {(a, b) for a, b, _ in repeated_draws(cells.theirs, cells.names["dataset"])}
    return [
        Cause(
            "repeated draw",
            {"seed": f"draw {second}"},
            0.0,
            np.inf,
            np.inf,
            f"the same as draw {first} in {_listed(d)}",
        )
        for first, second, d in repeated_draws(cells.ours, cells.names["dataset"])
        if (first, second) not in known
    ]


def _grids(cells: CellPair) -> list[Cause]:
    ours, theirs = (ratio_grids(cube, cells.items) for cube in (cells.ours, cells.theirs))
    wrong = [m for m in ours if m in theirs and ours[m] != theirs[m]]
    if not wrong:
        return []
    steps = f"ratios on a grid of {ours[wrong[0]]:g} instead of {theirs[wrong[0]]:g}"
    return [Cause("grid", {"method": ", ".join(wrong)}, 0.0, np.inf, np.inf, steps)]


def _spreads(cells: CellPair) -> list[Cause]:
    """A method whose accuracies or ratios vary more or less over draws than the other run's, in every dataset."""
    squares = [
        (cube.residues**2 * cells.known[:, :, :, :, None]).sum(axis=(1, 2, 3, 4)) for cube in (cells.ours, cells.theirs)
    ]
    vary = (squares[0] > 0) & (squares[1] > 0)
    logs = np.where(vary, np.log(np.where(vary, squares[0], 1) / np.where(vary, squares[1], 1)), np.nan)
    found = []
    for number, (method, measure) in enumerate(cells.items):
        own = logs[vary[:, number], number]
        if len(own) > 2 and own.std() > 0:
            score = float(normal_score(own.mean() / own.std(ddof=1) * np.sqrt(len(own)), float(len(own) - 1)))
            if abs(score) > normal_level(LOOK_LEVEL, len(cells.items)):
                what = f"its {measure} varies {np.exp(own.mean() / 2):.2f} times as much over draws"
                found.append(Cause("spread", {"method": method}, float(np.exp(own.mean() / 2)), score, score**2, what))
    return sorted(found, key=lambda cause: -cause.gain)


def _odd_draws(cells: CellPair) -> list[Cause]:
    """A draw number that lies apart from the others in every dataset."""
    found = []
    scale = np.sqrt(cells.variance)
    residues = np.moveaxis(cells.ours.residues, 4, 0)[:, cells.known] / scale
    datasets = cells.codes["dataset"]
    sizes = np.bincount(datasets)
    tests = len(residues)
    for seed, row in enumerate(residues):
        means = (np.bincount(datasets, row) / np.maximum(sizes, 1))[sizes > 0]
        if len(means) > 2 and means.std() > 0:
            score = normal_score(means.mean() / means.std(ddof=1) * np.sqrt(len(means)), float(len(means) - 1))
            if abs(score) > normal_level(LOOK_LEVEL, tests):
                size = float(np.mean(row * scale) * np.sqrt(tests * (tests - 1)))
                found.append(Cause("draw", {"seed": f"draw {seed}"}, size, score, score**2, f"{size:+.2f} points off"))
    # One draw apart puts the mean, and so the others, on the other side.
    return sorted(found, key=lambda cause: -abs(cause.size))[:1]


def _labels(cells: CellPair) -> Iterator[tuple[str, Int[Array, " N"], list[str]]]:
    """Ways to sort the entries: an axis, the number of each entry on it (−1: none), the names of the numbers."""
    accuracy = np.array([measure == "accuracy" for _, measure in cells.items])[cells.codes["item"]]
    for axis in AXES:
        names = [f"K = {name}" if axis == "shots" else str(name) for name in cells.names[axis]]
        yield axis, np.where(accuracy, cells.codes[axis], -1), names
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
    """The shift or the exchange that explains most, if any shift is beyond chance."""
    solved = cells.solve(cells.difference)
    labels = list(_labels(cells))
    scan = [(one,) for one in labels] + [pair for pair in combinations(labels, 2) if pair[0][0] != pair[1][0]]
    best, highest, tests = None, 0.0, 0
    for sorting in scan:
        code, count = np.zeros(len(solved), int), 1
        valid = np.ones(len(solved), bool)
        for _, codes, names in sorting:
            code, count, valid = code * len(names) + codes, count * len(names), valid & (codes >= 0)
        gain, score = _gains(cells, solved, np.where(valid, code, count), count + 1)
        gain, score = gain[:-1], score[:-1]
        tests += int((gain > 0).sum())
        highest = max(highest, np.abs(score).max(initial=0))
        top = int(np.argmax(gain))
        # Single names come first.
        if gain[top] > 0 and (best is None or gain[top] > best[0] * (NARROWER if len(sorting) > len(best[2]) else 1)):
            best = (gain[top], score[top], sorting, valid & (code == top))
    if best is None or highest < normal_level(SCAN_LEVEL, tests):
        return None
    gain, score, sorting, mask = best
    first = np.flatnonzero(mask)[0]
    where = {axis: names[codes[first]] for axis, codes, names in sorting}
    cause = _shift(cells, where, mask, gain, score)
    swap = _best_swap(cells, solved)
    if swap is not None and swap.gain > gain:
        return swap
    return _narrowed(cells, solved, labels, cause)


def _gains(
    cells: CellPair, solved: Float[Array, " N"], code: Int[Array, " N"], count: int
) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Of one shift per code: the drop of the weighted squares when it is taken out, and its normal score by the noise
    of draws alone."""
    G = len(cells.names["dataset"])
    weight = 1 / cells.variance
    total = np.bincount(code, weight, count)
    shift = np.bincount(code, weight * cells.difference, count) / np.where(total > 0, total, 1)
    place = code * G + cells.codes["dataset"]
    by_factor = np.stack([np.bincount(place, weight * f, count * G) for f in cells.factors.T], axis=1)
    by_factor = by_factor.reshape(count, G, -1)
    shares = (by_factor**2).sum(axis=2) / np.where(total > 0, total, 1)[:, None] ** 2
    variance, square = shares.sum(axis=1), (shares**2).sum(axis=1)
    freedom = cells.freedom * np.where(square > 0, variance**2 / np.where(square > 0, square, 1), 1)
    error = np.sqrt(np.maximum(variance, 1e-12))
    score = normal_score(shift / error, freedom)
    curvature = np.bincount(code, cells.diagonal, count)
    along = np.einsum("cgf,gfh->cgh", by_factor, cells.inner)
    curvature = curvature - (along**2).sum(axis=(1, 2))
    gain = np.bincount(code, solved, count) ** 2 / np.maximum(curvature, 1e-12)
    return np.where(total > 0, gain, 0), np.where(total > 0, score, 0)


def _narrowed(cells: CellPair, solved: Float[Array, " N"], labels: Sequence, cause: Cause) -> Cause:
    """The cause on fewer cells, where one more name explains clearly more."""
    assert cause.cells is not None
    for axis, codes, names in labels:
        if axis in cause.where:
            continue
        inside = cause.cells & (codes >= 0)
        gain, score = _gains(cells, solved, np.where(inside, codes, len(names)), len(names) + 1)
        top = int(np.argmax(gain[:-1]))
        if gain[top] > NARROWER * cause.gain:
            where = {**cause.where, axis: names[top]}
            return _narrowed(
                cells, solved, labels, _shift(cells, where, inside & (codes == top), gain[top], score[top])
            )
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
    """Two names of an axis exchanged, in one dataset or everywhere."""
    G = len(cells.names["dataset"])
    datasets = cells.codes["dataset"]
    best = None
    axes = [(axis, number, cells.names[axis]) for number, axis in enumerate(AXES)]
    methods = [method for method, measure in cells.items if measure == "accuracy"]
    for axis, number, names in (*axes, ("method", 4, methods)):
        for first, second in combinations(range(len(names)), 2):
            order = np.arange(cells.theirs.mean.shape[number])
            order[[first, second]] = second, first
            if axis == "method":
                order[[len(methods) + first, len(methods) + second]] = len(methods) + second, len(methods) + first
            pattern = (np.take(cells.theirs.mean, order, axis=number) - cells.theirs.mean)[cells.known]
            pattern = np.nan_to_num(pattern)
            touched = pattern != 0
            if not touched.any():
                continue
            along = np.zeros((G, cells.factors.shape[1]))
            np.add.at(along, datasets[touched], (pattern / cells.variance)[touched, None] * cells.factors[touched])
            half = np.einsum("gf,gfh->gh", along, cells.inner)
            curvature = np.bincount(datasets, cells.diagonal * pattern**2, G) - (half**2).sum(axis=1)
            slope = np.bincount(datasets, pattern * solved, G)
            options = [(None, slope.sum(), curvature.sum())]
            options += [(g, slope[g], curvature[g]) for g in range(G) if axis != "dataset" and curvature[g] > 0]
            for g, up, down in options:
                gain = up**2 / max(down, 1e-12)
                if SWAPPED[0] < up / max(down, 1e-12) < SWAPPED[1] and (best is None or gain > best.gain):
                    pair = " and ".join(
                        f"K = {n}" if axis == "shots" else str(n) for n in (names[first], names[second])
                    )
                    where = {axis: pair} if g is None else {"dataset": cells.names["dataset"][g], axis: pair}
                    mask = touched if g is None else touched & (datasets == g)
                    best = Cause("swap", where, 0.0, float(np.sqrt(gain)), float(gain), cells=mask)
    return best


def _without(cells: CellPair, cause: Cause) -> CellPair:
    """The pair with the other run's means where the cause is."""
    values = cells.ours.values.copy()
    change = np.zeros(cells.known.shape)
    assert cause.cells is not None
    change[cells.known] = np.where(cause.cells, cells.difference, 0)
    return replace(cells, ours=Cube(values - change[:, :, :, :, None]))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{len(names)} datasets"
