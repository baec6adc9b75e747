"""Compare two tables of records: missing ones, moved accuracies, the noise of draws, what differs in their keys."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kshot.bench.record import CIRCUMSTANCES, KEY, SECONDS
from kshot.stats.draw_noise import CANNOT_TELL, DIFFERS, DrawNoise, Judged, draw_noise, judge
from kshot.types import IMPORTED

# Measured or fitted in the working precision.
ROUNDED = {"lambda_js", "d2", "v", "share", "selected"}
Rows = Mapping[tuple, dict]

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Move:
    """How the records of one method, or of one dataset and backbone, differ between the folders.

    Accuracies in percentage points, second minus first. With different draws no record has a partner: `identical`,
    `flipped` (share of test pictures) and `largest_change` are None, as is `flipped` where no hits are kept.
    """

    of: str
    records: int
    mean_change: float
    judged: Judged
    identical: int | None = None
    flipped: float | None = None
    largest_change: float | None = None


@dataclass(frozen=True)
class Difference:
    """`circumstances` lists what differs around the numbers: versions, dtypes, features, machines.

    `rounding` is what printed accuracies may be off by, in points. `paired`: cells were compared one by one, having the
    same draws. `moves` are by method, `strata` by dataset and backbone over all methods.
    """

    paired: bool
    only_first: int
    only_second: int
    moves: tuple[Move, ...]
    strata: tuple[Move, ...]
    circumstances: dict[str, tuple[list[str], list[str]]]
    rounding: float = 0.0

    @property
    def same(self) -> bool:
        """Whether both folders have the same, identical records."""
        whole = self.paired and not (self.only_first or self.only_second)
        return whole and all(move.identical == move.records for move in self.moves)

    @property
    def differing(self) -> list[Move]:
        """The methods and strata that differ by more than the noise of draws."""
        return [move for move in (*self.moves, *self.strata) if move.judged.verdict == DIFFERS]

    @property
    def summary(self) -> str:
        """The result of the comparison in one sentence."""
        if self.same:
            return "the same records" + (", to the digits that were printed" if self.rounding else "")
        compared = [*self.moves, *self.strata]
        unseen = sum(move.judged.verdict == CANNOT_TELL for move in compared)
        if self.differing:
            worst = max(self.differing, key=lambda move: abs(move.judged.z))
            return (
                f"not the same results: {len(self.differing)} of {len(compared)} comparisons differ, most of all "
                f"{worst.of} by {worst.mean_change:+.2f} points (z = {worst.judged.z:.1f}); by chance none would, 19 "
                "times in 20"
            )
        if unseen == len(compared):
            return "cannot tell: a difference of one point would not be seen beside the noise of the draws"
        hidden = f"; in {unseen} of {len(compared)} comparisons one point would not be seen" if unseen else ""
        luck = "on average, though some records differ" if self.paired else "up to the luck of the draws"
        return f"the same results {luck}{hidden}"


def compare(first: "pa.Table", second: "pa.Table", steps: tuple[float, float] = (0.0, 0.0)) -> Difference:
    """Compare cells one by one where the draws are the same, else means by the noise of their draws.

    Records are `identical` if all columns but seconds and circumstances are equal. Between two precisions, measured
    numbers may differ, but no prediction; beside printed accuracies, only these are compared, to the `steps` of their
    digits in percentage points.
    """
    a, b = ({tuple(row[name] for name in KEY): row for row in table.to_pylist()} for table in (first, second))
    shared = [key for key in a if key in b]
    # A printed figure is off by up to half a step.
    rounding = sum(steps) / 2
    printed = DrawNoise(sum(step**2 for step in steps) / 12, 1e9)
    ours = not any(row["protocol"] == IMPORTED for rows in (a, b) for row in rows.values())
    paired = bool(shared) and (ours or all(_same_result(a[key], b[key], rounding) for key in shared))
    of_a, of_b = ({k: a[k] for k in shared}, {k: b[k] for k in shared}) if paired else _of_shared_strata(a, b)

    def moves(name_of: Callable[[tuple], str], names: Iterable[str]) -> tuple[Move, ...]:
        found = []
        for name in names:
            one, two = ({k: rows[k] for k in rows if name_of(k) == name} for rows in (of_a, of_b))
            if paired:
                found.append(_paired_move(name, one, two, printed, many, rounding))
            else:
                found.append(_unpaired_move(name, one, two, printed, many))
        return tuple(found)

    methods, strata = (dict.fromkeys(map(name_of, of_a)) for name_of in (_method, _place))
    many = len(methods) + len(strata)
    around = {name: (_values(of_a, name), _values(of_b, name)) for name in ("recipe", "dtype", "features", "made_by")}
    return Difference(
        paired=paired,
        only_first=len(a) - len(of_a),
        only_second=len(b) - len(of_b),
        moves=moves(_method, methods),
        strata=moves(_place, strata),
        circumstances={name: both for name, both in around.items() if both[0] != both[1]},
        rounding=rounding,
    )


def _method(key: tuple) -> str:
    return key[-1]


def _place(key: tuple) -> str:
    return "/".join(key[:2])


def _of_shared_strata(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """The records whose method, dataset, backbone, tier and K both folders have."""
    both = set(map(_stratum, a)) & set(map(_stratum, b))
    first, second = ({key: row for key, row in rows.items() if _stratum(key) in both} for rows in (a, b))
    return first, second


def _stratum(key: tuple) -> tuple:
    return tuple(value for name, value in zip(KEY, key, strict=True) if name != "seed")


def _unpaired_move(of: str, a: Rows, b: Rows, printed: DrawNoise, comparisons: int) -> Move:
    """The difference of means over strata, judged by the noise of both runs' draws."""
    scored = _of_shared_strata(_scored(a), _scored(b))
    points = [{key: 100 * row["accuracy"] for key, row in rows.items()} for rows in scored]
    (one, first), (two, second) = (_mean(values, by_stratum=True) for values in points)
    noise = _of_difference(first, second, len(scored[1]) / max(len(scored[0]), 1)) + printed
    return Move(of, len(a) + len(b), two - one, judge(two - one, noise, comparisons))


def _paired_move(of: str, a: Rows, b: Rows, printed: DrawNoise, comparisons: int, rounding: float) -> Move:
    """The mean of differences between records of the same draw."""
    pairs = {key: (a[key], b[key]) for key in _scored(a) if b[key]["accuracy"] is not None}
    changes = {key: 100 * (two["accuracy"] - one["accuracy"]) for key, (one, two) in pairs.items()}
    change, noise = _mean(changes)
    identical = sum(_same_result(a[key], b[key], rounding) for key in a)
    flips = [_flipped(*pair) for pair in pairs.values()]
    return Move(
        of,
        len(a),
        change,
        judge(change, printed if identical == len(a) else noise + printed, comparisons),
        identical=identical,
        flipped=None if None in flips else float(np.mean([flip or 0.0 for flip in flips] or [0.0])),
        largest_change=max(changes.values(), key=abs, default=0.0),
    )


def _of_difference(first: DrawNoise, second: DrawNoise, ratio: float) -> DrawNoise:
    """The noise of two runs' difference; one with too few draws to show any has the other's by the `ratio` of draws."""
    if np.isnan(first.variance):
        return DrawNoise(second.variance * (1 + ratio), second.freedom)
    if np.isnan(second.variance):
        return DrawNoise(first.variance * (1 + 1 / ratio), first.freedom)
    return first + second


def _scored(rows: Rows) -> Rows:
    return {key: row for key, row in rows.items() if row["accuracy"] is not None}


def _mean(values: Mapping[tuple, float], by_stratum: bool = False) -> tuple[float, DrawNoise]:
    """The mean over records, or over strata whatever number of draws each has, and its noise."""
    if not values:
        return 0.0, DrawNoise(0.0, 1.0)
    keys, found = list(values), np.array(list(values.values()))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(map(_stratum, keys)))}
    stratum = np.array([numbers[_stratum(key)] for key in keys])
    weights = 1 / (np.bincount(stratum)[stratum] * len(numbers)) if by_stratum else np.full(len(keys), 1 / len(keys))
    dataset, seed = (np.array([key[KEY.index(axis)] for key in keys]) for axis in ("dataset", "seed"))
    return float(weights @ found), draw_noise(found, weights, stratum, dataset, seed)


def _same_result(a: dict, b: dict, rounding: float) -> bool:
    """Whether the records are identical or, where one was printed, their accuracies are to rounding (in points)."""
    if not rounding:
        return _identical(a, b)
    if a["accuracy"] is None or b["accuracy"] is None:
        return a["accuracy"] is b["accuracy"]
    return abs(100 * (a["accuracy"] - b["accuracy"])) <= rounding + 1e-6


def _identical(a: dict, b: dict) -> bool:
    ignored = {*SECONDS, *CIRCUMSTANCES, "study", "title", "answered"}
    if a["dtype"] != b["dtype"]:
        ignored |= ROUNDED
    return all(a[name] == b[name] for name in a.keys() - ignored)


def _flipped(a: dict, b: dict) -> float | None:
    """Share of test pictures that one got right and the other wrong; None where one keeps no hits."""
    if not a["hits"] or not b["hits"]:
        return None
    if len(a["hits"]) != len(b["hits"]):
        return 1.0
    first, second = (np.frombuffer(row["hits"], np.uint8) for row in (a, b))
    return int(np.unpackbits(first ^ second).sum()) / max(a["n_test"], 1)


def _values(rows: Rows, name: str) -> list[str]:
    return sorted({row[name] or "" for row in rows.values()})
