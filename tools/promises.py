"""Are the promises of `kshot fit` and `kshot predict` kept? Tables for docs/promises.md.

`python -m tools.promises` draws shots from the bundled open sets, fits as `kshot fit` does, and looks at all pictures
that were not drawn: is their accuracy inside the interval that was told, and is the right class in the set that was
named? Every draw is added to --kept as it is done, and the same command continues. `--shots`, `--draws` and `--show`
(tables of what is kept, nothing computed) choose.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy.special import softmax
from tools.open_pictures import OPEN_SETS, draw_pictures

from kshot.pictures.advice import advise
from kshot.pictures.assess import assess

KEPT = Path(__file__).resolve().parents[1] / "docs" / "promises.csv"
COLUMNS = ("dataset", "shots", "seed", "low", "high", "accuracy", "in_set", "set_size")


def promise(dataset: str, shots: int, seed: int) -> list[str]:
    """One row: the interval that was told, the accuracy on new pictures, how often a set was right and its size."""
    drawn = draw_pictures(dataset, shots, seed)
    advice = advise(drawn.shots.counts)
    told = assess(advice, drawn.shots)
    if told.accuracy is None:
        raise SystemExit(f"{shots} shots of {dataset} cannot be measured; ask for two at least.")
    head = drawn.shots.fit(advice.make())
    own = softmax(head.scores(drawn.X).astype(np.float64) / told.temperature, axis=1)
    rows, best = np.arange(len(drawn.y)), own.argmax(axis=1)
    named = own >= (told.set_threshold or 0.0)
    named[rows, best] = True
    numbers = (
        told.accuracy.low,
        told.accuracy.high,
        (best == drawn.y).mean(),
        named[rows, drawn.y].mean(),
        named.sum(axis=1).mean(),
    )
    return [dataset, str(shots), str(seed), *(f"{x:.4f}" for x in numbers)]


def extend(kept: Path, shots: list[int], draws: int) -> None:
    done = {tuple(row[:3]) for row in read_kept(kept)}
    for seed in range(draws):
        for count in shots:
            for dataset in OPEN_SETS:
                if (dataset, str(count), str(seed)) not in done:
                    row = promise(dataset, count, seed)
                    with kept.open("a", encoding="utf-8", newline="") as file:
                        csv.writer(file, lineterminator="\n").writerow(row)


def read_kept(kept: Path) -> list[list[str]]:
    if not kept.exists():
        kept.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with kept.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def tables(kept: Path) -> str:
    """Coverage of intervals, then of sets, by dataset and shots."""
    rows = read_kept(kept)
    shots = sorted({int(row[1]) for row in rows})
    numbers = {
        (dataset, count): np.array([row[3:] for row in rows if row[:2] == [dataset, str(count)]], float)
        for dataset in OPEN_SETS
        for count in shots
    }
    inside = {key: (own[:, 0] <= own[:, 2]) & (own[:, 2] <= own[:, 1]) for key, own in numbers.items() if len(own)}
    out = [_head("accuracy inside its interval", shots)]
    for dataset in OPEN_SETS:
        cells = [inside.get((dataset, count), np.empty(0)) for count in shots]
        out.append(_row(dataset, [f"{own.sum():.0f} of {len(own)}" for own in cells]))
    pooled = [np.concatenate([inside[d, count] for d in OPEN_SETS if (d, count) in inside]) for count in shots]
    out.append(_row("all", [f"{100 * own.mean():.1f} % of {len(own)}" for own in pooled]))
    out += ["", _head("right class in the set (classes in a set)", shots)]
    means = {key: own[:, 3:].mean(axis=0) for key, own in numbers.items() if len(own)}
    for dataset in OPEN_SETS:
        cells = [means.get((dataset, count)) for count in shots]
        out.append(_row(dataset, ["–" if own is None else f"{100 * own[0]:.1f} % ({own[1]:.1f})" for own in cells]))
    whole = [np.mean([means[d, count][0] for d in OPEN_SETS if (d, count) in means]) for count in shots]
    out.append(_row("mean of the sets", [f"{100 * own:.1f} %" for own in whole]))
    return "\n".join(out)


def _head(title: str, shots: list[int]) -> str:
    return _row(title, [f"K = {count}" for count in shots]) + "\n|" + "---|" * (len(shots) + 1)


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--draws", type=int, default=15)
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if not given.show:
        extend(given.kept, given.shots, given.draws)
    print(tables(given.kept))
