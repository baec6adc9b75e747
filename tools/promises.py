"""Are the promises of `kshot fit` and `kshot predict` kept? docs/promises.csv and the tables of docs/promises.md.

`python -m tools.promises` draws shots from the bundled open sets and from the real CLIP sets in features/ (`make
clip-features`), fits as `kshot fit` does, and looks at pictures that were not drawn; then it does so again without a
quarter of the classes, whose pictures are never-shown ones. Every draw is added to the CSV as it is done, and the same
command continues. `--shots`, `--draws`, `--dataset` choose; `--show` prints the tables of what is kept.

The two constants of the learning curve are those of all sets (the last line that is printed). The tables judge each set
with the constants that the other sets choose.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax
from tools.open_pictures import OPEN_SETS, PictureDraw, draw_pictures, some_classes
from tools.refill import TABLE

from kshot.data.store import Store
from kshot.pictures.advice import advise
from kshot.pictures.assess import KEPT_SHARE, Assessment, assess, margins
from kshot.pictures.held_out import Z95

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE = ROOT / "docs" / "promises.csv", ROOT / "docs" / "promises.md"
# The encoders of each set; draw after draw takes the next one.
SETS = {
    **dict.fromkeys(OPEN_SETS, ("lite0",)),
    **dict.fromkeys(("caltech101", "dtd", "fgvc-aircraft", "food101", "ucf101"), ("ViT-B-16",)),
    **dict.fromkeys(("stanford-cars", "imagenet"), ("ViT-B-32",)),
    "whu-rs19": ("RN50", "ViT-B-32", "ViT-L-14", "GeoRSCLIP-B-32", "SkyCLIP-B-32", "RemoteCLIP-B-32"),
}
# Sets whose pool holds fewer than 17 pictures of each class: the most that are drawn.
SMALL_POOLS = {"food101": 7, "dtd": 7, "imagenet": 3}
# Of larger sets each draw takes so many classes at random: a user has few, and all would take hours.
MOST_CLASSES = 40
NUMBERS = (
    *("measured", "correct", "before", "expected", "low", "high", "accuracy"),
    *("gain", "gain_low", "gain_high", "true_gain"),
    *("classes_inside", "in_set", "set_size"),
    *("lost", "never_unsure", "never_by_margin", "never_by_probability"),
)
COLUMNS = ("backbone", "dataset", "shots", "seed", *NUMBERS)
# Classes that are measured one by one have so many new pictures.
LEAST_NEW = 15
EXPONENTS, SPREADS = np.linspace(0, 1, 41), np.linspace(0, 1.5, 31)
# Shares of the draws whose accuracy, and of the sets whose mean gain, shall be inside the interval.
DRAWS_INSIDE, SETS_INSIDE = 0.95, 0.9
Rows = list[dict[str, Any]]
Columns = dict[str, np.ndarray]


def promise(draw: PictureDraw, shots: int) -> list[float]:
    """What was said of one draw's head and of new pictures, and what is true of them."""
    advice = advise(draw.shots.counts)
    said, head = assess(advice, draw.shots), draw.shots.fit(advice.make())
    logits = head.scores(draw.X).astype(np.float64) / said.temperature
    right = logits.argmax(axis=1) == draw.y
    more = draw.more.fit(advice.make()).scores(draw.X).argmax(axis=1) == draw.y
    probabilities = softmax(logits, axis=1)
    named = probabilities >= (said.set_threshold or 0.0)
    named[np.arange(len(right)), logits.argmax(axis=1)] = True
    correct = sum(row[c] for c, row in enumerate(said.confusion))
    before = shots - said.measured / len(said.confusion) / min(shots, 8)
    accuracy, gain = said.accuracy, said.next_shot
    assert accuracy is not None
    assert gain is not None
    return [
        *(said.measured, correct, before),
        *(accuracy.value, accuracy.low, accuracy.high, right.mean()),
        *(gain.value, gain.low, gain.high, more.mean() - right.mean()),
        _classes_inside(said, right, draw.y),
        named[np.arange(len(right)), draw.y].mean(),
        named.sum(axis=1).mean(),
    ]


def _classes_inside(said: Assessment, right: np.ndarray, y: np.ndarray) -> float:
    """Share of the classes, of those with enough new pictures, whose accuracy is inside its interval."""
    inside = [
        interval.low <= right[y == c].mean() <= interval.high
        for c, interval in enumerate(said.per_class)
        if interval is not None and (y == c).sum() >= LEAST_NEW
    ]
    return float(np.mean(inside)) if inside else float("nan")


def never_shown(draw: PictureDraw, seed: int) -> list[float]:
    """Without a quarter of the classes: recognised pictures called unsure, never-shown ones called unsure, and those
    that margin and probability flag where each flags 5 % of the recognised."""
    classes = len(draw.shots.text)
    draw = some_classes(draw, classes - classes // 4, seed)
    shots, labels = draw.shots, draw.y
    advice = advise(shots.counts)
    said, head = assess(advice, shots), shots.fit(advice.make())
    logits = head.scores(draw.X).astype(np.float64) / said.temperature
    right, never = logits.argmax(axis=1) == labels, labels < 0
    margin, probability = margins(logits), softmax(logits, axis=1).max(axis=1)
    unsure = margin < (-np.inf if said.threshold is None else said.threshold)
    flagged = (np.mean(score[never] < np.quantile(score[right], 1 - KEPT_SHARE)) for score in (margin, probability))
    return [unsure[right].mean(), unsure[never].mean(), *flagged]


def extend(kept: Path, shots: list[int], draws: int, datasets: list[str]) -> None:
    store = Store(ROOT / "features")
    done = {(row["backbone"], row["dataset"], row["shots"], row["seed"]) for row in read_kept(kept)}
    for seed in range(draws):
        for count in shots:
            for dataset, backbones in SETS.items():
                backbone = backbones[seed % len(backbones)]
                key = (backbone, dataset, float(count), float(seed))
                if key in done or count > SMALL_POOLS.get(dataset, 15) or (datasets and dataset not in datasets):
                    continue
                draw = draw_pictures(dataset, count, seed, backbone, store, MOST_CLASSES)
                numbers = promise(draw, count) + never_shown(draw, seed)
                with kept.open("a", encoding="utf-8", newline="") as file:
                    row = [backbone, dataset, count, seed, *(f"{x:.4g}" for x in numbers)]
                    csv.writer(file, lineterminator="\n").writerow(row)


def read_kept(kept: Path) -> Rows:
    if not kept.exists():
        kept.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with kept.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return [{name: x if name in COLUMNS[:2] else float(x) for name, x in row.items()} for row in rows]


def carried(rows: Columns, exponent: float, spread: float) -> Columns:
    """What `kshot fit` says of the accuracy and of the gain with these constants."""
    share = (rows["correct"] + 0.5) / (rows["measured"] + 1)
    steps = np.log(rows["shots"] / rows["before"])
    centre = logit(share) + exponent * steps
    half = Z95 * np.hypot(1 / np.sqrt(rows["measured"] * share * (1 - share)), spread * steps)
    now, more = expit(centre), np.log1p(1 / rows["shots"])
    gains = {
        name: expit(centre + b * more) - now
        for name, b in (("gain", exponent), ("gain_low", exponent - spread), ("gain_high", exponent + spread))
    }
    return {"expected": now, "low": expit(centre - half), "high": expit(centre + half), **gains}


def constants(rows: Columns) -> tuple[float, float]:
    """The exponent with the true mean gain, and the least spread that keeps both intervals.

    These are 95 of 100 draws for the accuracy, and the mean gain of 90 of 100 sets. Every set counts the same. The gain
    is taken from the true accuracy, because few pictures are left out.
    """
    _, place, size = np.unique(rows["dataset"], return_inverse=True, return_counts=True)
    weight = 1 / size[place] / len(size)
    accuracy = np.clip(rows["accuracy"], 0.01, 0.99)

    def gain_error(exponent: float) -> float:
        gain = expit(logit(accuracy) + exponent * np.log1p(1 / rows["shots"])) - accuracy
        return abs(float(weight @ (gain - rows["true_gain"])))

    exponent = float(min(EXPONENTS, key=gain_error))
    _, cell = np.unique(100 * place + rows["shots"], return_inverse=True)

    def keeps(spread: float) -> bool:
        said = carried(rows, exponent, spread)
        inside = (said["low"] <= rows["accuracy"]) & (rows["accuracy"] <= said["high"])
        low, true, high = (np.bincount(cell, x) for x in (said["gain_low"], rows["true_gain"], said["gain_high"]))
        return bool(weight @ inside >= DRAWS_INSIDE and np.mean((low <= true) & (true <= high)) >= SETS_INSIDE)

    return exponent, next((float(spread) for spread in SPREADS if keeps(spread)), float(SPREADS[-1]))


def columns(rows: Rows) -> Columns:
    return {name: np.array([row[name] for row in rows]) for name in COLUMNS}


def without_own_set(rows: Rows) -> Rows:
    """The rows with what the constants of the other sets say."""
    out = []
    for name in sorted({str(row["dataset"]) for row in rows}):
        own = [row for row in rows if row["dataset"] == name]
        chosen = constants(columns([row for row in rows if row["dataset"] != name]))
        said = carried(columns(own), *chosen)
        out += [row | {key: float(x[n]) for key, x in said.items()} for n, row in enumerate(own)]
    return out


def by_set(rows: Rows, number: Callable[[dict[str, Any]], float], name: str) -> float:
    values = [value for row in rows if row["dataset"] == name and not np.isnan(value := number(row))]
    return float(np.mean(values)) if values else float("nan")


def tables(kept: Path) -> str:
    """Means over sets by number of shots."""
    every = without_own_set(read_kept(kept))
    shots = sorted({int(row["shots"]) for row in every})
    at = {count: [row for row in every if row["shots"] == count] for count in shots}

    def cells(number: Callable[[dict[str, Any]], float], form: str, of: Callable = np.nanmean) -> list[str]:
        names = {count: sorted({str(row["dataset"]) for row in rows}) for count, rows in at.items()}
        return [format(of([by_set(at[count], number, name) for name in names[count]]), form) for count in shots]

    def inside(low: str, true: str, high: str) -> Callable[[dict[str, Any]], float]:
        return lambda row: 100.0 * (row[low] <= row[true] <= row[high])

    def percent(name: str) -> Callable[[dict[str, Any]], float]:
        return lambda row: 100 * row[name]

    heads = [f"K = {count}" for count in shots]
    lines = [
        ("accuracy of the head, in per cent", heads),
        ("sets, fits", [f"{len({row['dataset'] for row in at[count]})}, {len(at[count])}" for count in shots]),
        ("said", cells(percent("expected"), ".1f")),
        ("true", cells(percent("accuracy"), ".1f")),
        ("said − true", cells(lambda r: 100 * (r["expected"] - r["accuracy"]), "+.1f")),
        ("the same on the worst set", cells(lambda r: 100 * (r["expected"] - r["accuracy"]), "+.1f", _furthest)),
        ("inside the interval", cells(inside("low", "accuracy", "high"), ".0f")),
        ("the same on the worst set", cells(inside("low", "accuracy", "high"), ".0f", np.min)),
        ("classes inside their intervals", cells(percent("classes_inside"), ".0f")),
        ("one more picture per class, in points", heads),
        ("said", cells(percent("gain"), ".1f")),
        ("true", cells(percent("true_gain"), ".1f")),
        ("sets inside the interval", _sets_inside(at)),
        ("sets of classes", heads),
        ("right class in the set", cells(percent("in_set"), ".1f")),
        ("the same on the worst set", cells(percent("in_set"), ".1f", np.min)),
        ("classes in a set, median of the sets", cells(lambda r: r["set_size"], ".1f", np.median)),
        ("called unsure, in per cent", heads),
        ("recognised pictures", cells(percent("lost"), ".0f")),
        ("the same on the worst set", cells(percent("lost"), ".0f", np.max)),
        ("pictures of never-shown classes", cells(percent("never_unsure"), ".0f")),
        ("the same, least and most of the sets", _range(at, "never_unsure")),
        ("never-shown where 5 % of the recognised are unsure", cells(percent("never_by_margin"), ".0f")),
        ("the same by the probability", cells(percent("never_by_probability"), ".0f")),
    ]
    out = []
    for name, row in lines:
        if row is heads:
            out += ["", _row(name, heads), "|" + "---|" * (len(heads) + 1)]
        else:
            out.append(_row(name, row))
    return "\n".join(out[1:]) + "\n"


def with_tables(page: str, printed: str) -> str:
    """The page with these tables instead of those that begin with the same words."""
    made = {_title(table[0]): table[0] for table in TABLE.finditer(printed)}
    return TABLE.sub(lambda match: made.get(_title(match[0]), match[0]), page)


def _title(table: str) -> str:
    return table.split("|")[1].strip()


def _furthest(values: list[float]) -> float:
    return max(values, key=abs)


def _range(at: dict[int, Rows], column: str) -> list[str]:
    found = []
    for rows in at.values():
        values = [100 * by_set(rows, lambda row: row[column], str(name)) for name in {row["dataset"] for row in rows}]
        found.append(f"{min(values):.0f} to {max(values):.0f}")
    return found


def _sets_inside(at: dict[int, Rows]) -> list[str]:
    """Of how many sets the mean true gain lies between the mean ends."""
    found = []
    for rows in at.values():
        names = {str(row["dataset"]) for row in rows}
        ends = [[by_set(rows, lambda r, c=c: r[c], n) for c in ("gain_low", "true_gain", "gain_high")] for n in names]
        found.append(f"{sum(low <= true <= high for low, true, high in ends)} of {len(names)}")
    return found


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=int, nargs="+", default=[2, 3, 4, 8])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--dataset", action="append", default=[])
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if not given.show:
        extend(given.kept, given.shots, given.draws, given.dataset)
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables(given.kept)), encoding="utf-8")
    print(tables(given.kept))
    exponent, spread = constants(columns(read_kept(given.kept)))
    print(f"exponent {exponent:.3f}, spread {spread:.2f}")
