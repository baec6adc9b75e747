"""Two runs cell by cell: exactly where they share draws, by exchanging their draws where they do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Bool, Float

from kshot.paper.arms import Observations
from kshot.paper.beside import Apart
from kshot.paper.figures import ANY, WITH_SHOTS, WITHOUT_SHOTS, Place, item_name
from kshot.paper.signs import AXES, Cube, cube, on_axes
from kshot.stats.scores import normal_score
from kshot.types import Array

EXCHANGES, SEED = 499, 0
# The variance of a place in one dataset is mixed with so many degrees of freedom of the middle dataset's.
PRIOR = 8.0
# On the same draws a head differs where so many of its cells do by more than so many pictures.
FEW_CELLS, FEW_PICTURES = 0.02, 2.5
# Points that a number without draws may move by arithmetic; what counts as no variance.
ROUNDING, NOTHING = 0.1, 1e-9
SAME_DRAWS = 0.5
RANKED = 400
# In the order of places, what no draw changes counts as if it varied by so many points.
LEAST_DEVIATION = 0.02
FEWEST_EXCHANGES = 100


@dataclass(frozen=True)
class Moved:
    """A head that two runs on the same draws do not agree on."""

    method: str
    cells: int
    of: int
    mean: float

    def __str__(self) -> str:
        return f"{self.method}: {self.cells:,} of {self.of:,} cells moved, by {self.mean:+.2f} points on average"


@dataclass(frozen=True)
class Exchange:
    """p of the largest place against all exchanges of draws, the places, and names of what no draw changes and differs.
    `coarse` where there are too few exchanges for a small p."""

    p: float
    places: Sequence[Apart]
    fixed: Sequence[str]
    coarse: bool


def same_draws(ours: Observations, theirs: Observations) -> bool:
    """Whether draws of the same number are the same draws: most of what varies with them varies alike."""
    a, b = _common(ours, theirs)
    if not np.isfinite(a.values + b.values).any():
        return False
    if a.values.shape[4] < 2:
        return bool(np.nanmean(np.where(np.isfinite(a.values + b.values), a.values == b.values, np.nan)) > SAME_DRAWS)
    known = np.isfinite(a.values) & np.isfinite(b.values)
    x, y = (_centred(np.where(known, one.values, np.nan)) for one in (a, b))
    both = np.sqrt((x**2).sum() * (y**2).sum())
    return bool(both > 0 and (x * y).sum() > SAME_DRAWS * both)


def _centred(values: Float[Array, "d b t k s m"]) -> Float[Array, "d b t k s m"]:
    n = np.isfinite(values).sum(axis=4, keepdims=True)
    mean = np.nansum(values, axis=4, keepdims=True) / np.maximum(n, 1)
    return np.where(np.isfinite(values), values - mean, 0)


def _common(ours: Observations, theirs: Observations) -> tuple[Cube, Cube]:
    """Both runs' accuracies on the names and methods that both have."""
    shared = [
        {axis: set(run.panel.cells[axis].tolist()) for axis in AXES} | {"method": set(run.panel.methods)}
        for run in (ours, theirs)
    ]
    names = {axis: sorted(shared[0][axis] & shared[1][axis]) for axis in shared[0]}
    methods = names.pop("method")
    return _on(cube(ours, names=names), methods), _on(cube(theirs, names=names), methods)


def _on(whole: Cube, methods: Sequence[str]) -> Cube:
    at = [list(whole.methods).index(method) for method in methods]
    return Cube(whole.values[..., at], whole.names, methods)


def moved_heads(ours: Observations, theirs: Observations) -> tuple[list[Moved], list[Moved]]:
    """On the same draws: heads that differ, and heads of which only a few cells do by a picture or two."""
    a, b = _common(ours, theirs)
    sizes = on_axes(ours.panel, ours.panel.cells["n_test"], a.names)[..., None]
    apart = a.values - b.values
    pictures = np.round(apart * sizes / 100)
    moved, flips = [], []
    for number, method in enumerate(a.methods):
        known = np.isfinite(apart[..., number])
        differ = known & (pictures[..., number] != 0)
        head = Moved(
            method, int(differ.sum()), int(known.sum()), float(apart[..., number][known].mean()) if known.any() else 0.0
        )
        if not differ.any():
            continue
        far = known & (np.abs(pictures[..., number]) > FEW_PICTURES)
        (moved if far.sum() > FEW_CELLS * known.sum() else flips).append(head)
    return sorted(moved, key=lambda head: -abs(head.mean)), flips


def stacked_items(
    run: Observations, names: Mapping[str, Sequence], methods: Sequence[str]
) -> Float[Array, "d b t k s i"]:
    """Accuracies, ratios in hundredths, and the share and squared distance in hundredths."""
    parts = [_on(cube(run, names=names), methods).values, 100 * _on(cube(run, "ratio", names), methods).values]
    facts = [100 * on_axes(run.panel, run.panel.cells[fact], names)[..., None] for fact in ("share", "d2")]
    return np.concatenate([*parts, *facts], axis=-1)


@dataclass(frozen=True)
class _Base:
    """A place inside every dataset, and the cells (backbone, tier, shots, item) in it."""

    place: Place
    at: tuple[Array, ...]


def _bases(names: Mapping[str, Sequence], items: Sequence[str], methods: int) -> list[_Base]:
    accuracies = list(range(methods))
    with_shots = [i for i in accuracies if items[i] != WITHOUT_SHOTS]
    groups = [(ANY, accuracies), (WITH_SHOTS, with_shots), *((name, [i]) for i, name in enumerate(items))]
    axes = AXES[1:4]
    whole = {axis: list(range(len(names[axis]))) for axis in axes}
    found = []
    for chosen in ((), *((axis,) for axis in axes), *combinations(axes, 2)):
        for numbers in np.ndindex(*(len(names[axis]) for axis in chosen)):
            named = {axis: str(names[axis][n]) for axis, n in zip(chosen, numbers, strict=True)}
            cells = whole | {axis: [n] for axis, n in zip(chosen, numbers, strict=True)}
            for item, members in groups if len(chosen) < 2 else groups[:1]:
                if members:
                    found.append(_Base(Place(**named, item=item), np.ix_(*(cells[a] for a in axes), members)))
    return found


def exchange(ours: Observations, theirs: Observations) -> Exchange:
    """Permute the draws of both runs within each dataset; the largest studentised place decides."""
    shared = [{axis: set(run.panel.cells[axis].tolist()) for axis in AXES[:4]} for run in (ours, theirs)]
    names: dict[str, Sequence] = {axis: sorted(shared[0][axis] & shared[1][axis]) for axis in AXES[:4]}
    methods = [m for m in ours.panel.methods if m in theirs.panel.methods]
    a, b = (
        stacked_items(run, {**names, "seed": sorted(set(run.panel.seed.tolist()))}, methods) for run in (ours, theirs)
    )
    items = [*methods, *(item_name(m, "ratio") for m in methods), "quantity share", "quantity d2"]
    return exchange_cubes(a, b, names, items, len(methods))


def exchange_cubes(
    a: Float[Array, "d b t k s i"],
    b: Float[Array, "d b t k r i"],
    names: Mapping[str, Sequence],
    items: Sequence[str],
    methods: int,
) -> Exchange:
    """`exchange` of arrays; the first of the items are accuracies."""
    na, nb = a.shape[4], b.shape[4]
    n, half = na + nb, na * nb / (na + nb)
    both = np.concatenate([a, b], axis=4)
    there = np.asarray(np.isfinite(both).all(axis=4))
    centred = np.where(there[:, :, :, :, None], both, 0)
    centred = centred - centred.mean(axis=4, keepdims=True)
    variance = (centred**2).sum(axis=4) / (n - 1)
    count = np.maximum(there.sum(axis=(1, 2)), 1)
    typical = variance.sum(axis=(1, 2)) / count
    in_dataset = np.asarray(there.any(axis=(1, 2)))
    pooled = np.array(
        [
            [_median(c[h]) for c, h in zip(*of_k, strict=True)]
            for of_k in zip(np.moveaxis(typical, 0, -1), np.moveaxis(in_dataset, 0, -1), strict=True)
        ]
    )
    typical = 0.5 * typical + 0.5 * pooled
    varies = _varies(a, b, there, typical)
    usable = there & varies & (typical > NOTHING)[:, None, None]
    weight = np.where(usable, 1 / np.where(typical > NOTHING, typical, np.inf)[:, None, None], 0)
    fixed = _fixed_apart(a, b, there & ~varies, names, items, methods)
    datasets = np.flatnonzero(usable.any(axis=(1, 2, 3, 4)))
    bases = _bases(names, items, methods)
    if not len(datasets):
        return Exchange(1.0, [], fixed, True)
    members = _members(bases, weight.shape[1:])
    by_draw = np.moveaxis(centred * weight[:, :, :, :, None], 4, -1)
    sums = np.stack([members @ by_draw[d].reshape(-1, n) for d in datasets])
    norms = np.stack([members @ weight[d].reshape(-1) for d in datasets])
    has = norms > NOTHING
    squares = (sums**2).sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        usual = np.nan_to_num(_nanmedian(np.where(has, squares / norms / (n - 1), np.nan)))[None] * norms
    labels = np.concatenate([np.full(na, 1 / na), np.full(nb, -1 / nb)])
    rng = np.random.default_rng(SEED)
    freedom = n - 2 + PRIOR
    largest, first = np.zeros(EXCHANGES + 1), (np.zeros(0), np.zeros(0), np.zeros(0))
    for turn in range(EXCHANGES + 1):
        signs = np.stack([labels if turn == 0 else rng.permutation(labels) for _ in datasets])
        apart = np.einsum("ds,dgs->dg", signs, sums)
        own = (np.maximum(squares - half * apart**2, 0) + PRIOR * usual) / freedom / half
        each = np.where(has, apart / np.sqrt(np.where(has, own, 1)), 0)
        total = np.where(has, own, 0).sum(axis=0)
        whole = np.where(total > 0, apart.sum(axis=0) / np.sqrt(np.where(total > 0, total, 1)), 0)
        if turn == 0:
            first = (_normal(each, freedom), _normal(whole, 4 * freedom), apart)
        # Both are Student's t; all datasets together have about four times the freedom of one.
        largest[turn] = max(
            abs(normal_score(np.abs(each).max(), freedom)), abs(normal_score(np.abs(whole).max(), 4 * freedom))
        )
    p = (1 + (largest[1:] >= largest[0] - 1e-9).sum()) / (EXCHANGES + 1)
    rows = _rows(first, bases, names["dataset"], datasets, norms)
    difference = np.where(there, np.nan_to_num(a.mean(axis=4)) - np.nan_to_num(b.mean(axis=4)), 0)
    steady = np.where(there, 1 / np.maximum(typical, LEAST_DEVIATION**2)[:, None, None], 0)
    coarse = comb(n, na) ** len(datasets) < FEWEST_EXCHANGES
    return Exchange(float(p), _ranked(rows, difference, steady), fixed, coarse)


def _normal(t: Array, freedom: float) -> Array:
    return np.asarray(normal_score(t.reshape(-1), freedom)).reshape(t.shape)


def _median(values: Array) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _nanmedian(values: Float[Array, "d g"]) -> Float[Array, " g"]:
    return np.array([_median(column[np.isfinite(column)]) for column in values.T])


def _varies(a: Array, b: Array, there: Bool[Array, "d b t k i"], typical: Float[Array, "d k i"]) -> Array:
    """Items and shot counts on which draws have an influence in either run."""
    if min(a.shape[4], b.shape[4]) < 2:
        return (typical.max(axis=0) > NOTHING)[None, None, None]
    within = np.where(there, a.var(axis=4) + b.var(axis=4), 0)
    return (np.nan_to_num(within).max(axis=(0, 1, 2)) > 1e-6)[None, None, None]


def _members(bases: Sequence[_Base], shape: tuple[int, ...]) -> Float[Array, "g c"]:
    """Which cells (backbone, tier, shots, item) are in each place."""
    found = np.zeros((len(bases), *shape))
    for number, base in enumerate(bases):
        found[(number, *base.at)] = 1
    return found.reshape(len(bases), -1)


def _fixed_apart(
    a: Array, b: Array, still: Array, names: Mapping[str, Sequence], items: Sequence[str], methods: int
) -> list[str]:
    """Accuracies that no draw changes and that differ, by the axis whose names hold most of them."""
    apart = still & (np.abs(np.nan_to_num(a.mean(axis=4) - b.mean(axis=4))) > ROUNDING)
    apart[..., methods:] = False
    if not apart.any():
        return []
    found = f"{int(apart.sum())} of {int(still[..., :methods].sum())} accuracies that no draw changes differ"
    for number, axis in enumerate(AXES[:4]):
        by_name = apart.sum(axis=tuple(n for n in range(5) if n != number))
        if (by_name > 0).sum() < len(names[axis]) or len(names[axis]) == 1:
            found += f"; {axis}: " + ", ".join(str(names[axis][n]) for n in np.flatnonzero(by_name).tolist())
    return [found + f"; of {', '.join(items[i] for i in np.flatnonzero(apart.any(axis=(0, 1, 2, 3))).tolist())}"]


def _rows(
    first: tuple[Array, Array, Array], bases: Sequence[_Base], datasets: Sequence, here: Array, norms: Array
) -> list[tuple[Place, tuple[Array, ...], float, float]]:
    """Every place with its cells, its score and its size, the largest scores first."""
    each, whole, apart = first
    total = norms.sum(axis=0)
    rows = []
    for g, base in enumerate(bases):
        cells = tuple(axis.reshape(-1) for axis in base.at)
        if total[g] > NOTHING:
            rows.append((base.place, (here, *cells), float(whole[g]), float(apart[:, g].sum() / total[g])))
        for number, d in enumerate(here):
            if norms[number, g] > NOTHING and len(here) > 1:
                place = Place(str(datasets[d]), *list(vars(base.place).values())[1:])
                rows.append(
                    (place, (np.array([d]), *cells), float(each[number, g]), float(apart[number, g] / norms[number, g]))
                )
    return sorted(rows, key=lambda row: -abs(row[2]))[:RANKED]


def _ranked(rows: Sequence[tuple], difference: Array, weight: Array) -> list[Apart]:
    """Places by their mean over its standard error and its unevenness along every other axis: a name is first where its
    cells agree."""
    found = []
    for place, cells, score, _ in rows:
        w, d = (values[np.ix_(*cells)] for values in (weight, difference))
        if w.sum() <= 0:
            continue
        mean = (w * d).sum() / w.sum()
        between = 0.0
        for axis in range(5):
            others = tuple(n for n in range(5) if n != axis)
            own = w.sum(axis=others)
            good = own > 0
            k = good.sum()
            if k > 1:
                share = own[good] / own[good].sum()
                level = (w * d).sum(axis=others)[good] / own[good]
                between = max(between, float((share**2 * (level - mean) ** 2).sum() * k / (k - 1)))
        error = abs(mean) / max(abs(score), 1e-9)
        found.append(Apart(place, float(mean), score, float(mean**2 / (error**2 + between + 1e-4))))
    return sorted(found, key=lambda one: -one.squared)
