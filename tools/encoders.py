"""The same pictures through other encoders, without text: a table for docs/clip.md.

`python -m tools.encoders ../shared/real` reads the files that hold images of several encoders (`make clip-features`
reads the same folder), draws the same shots for every encoder, and prints the accuracy of heads that read no text,
their paired differences, and the geometry of the pools. Test pictures are the validation split where an encoder lacks
the test split; every row says so.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kshot.data.episode import draw_support
from kshot.methods.logistic_probe import LogisticProbe
from kshot.methods.ncm import NCM
from kshot.solvers.gaussian import fit_gaussian
from kshot.solvers.rows import class_means, population_moments, squared_norms, unit_rows
from kshot.stats.bootstrap import cluster_mean
from kshot.theory.sampling import participation_ratio, unbiased_trace_of_square
from kshot.types import Labelled

CLAIMS = Path(__file__).resolve().parents[1] / "src" / "kshot" / "paper" / "claims.csv"
FILES = {
    "caltech101": "caltech101_vitb16",
    "fgvc-aircraft": "fgvc_aircraft_vitb16",
    "food101": "food101_vitb16",
    "ucf101": "ucf101_vitb16",
    "dtd": "dtd_vitb16",
}
ENCODERS = {"ViT-B/16": "", "ViT-B/32": "_vitb32", "RN50": "_rn50"}
HEADS = ("NCM", "GDA without text", "logistic probe")
SHOTS, SEEDS = (2, 4), range(5)


class Pictures(NamedTuple):
    """One set through one encoder."""

    dataset: str
    encoder: str
    part: str
    pool: Labelled
    test: Labelled


def pictures(folder: Path) -> Iterator[Pictures]:
    """Every set and encoder, and the part of the file that judges."""
    for dataset, name in FILES.items():
        with np.load(folder / f"{name}.npz") as file:
            for part in ("test", "val"):
                there = [e for e, end in ENCODERS.items() if len(file.get(f"{part}_x{end}", ())) > 0]
                # The validation split is for encoders that have no test split.
                if part == "val" and all(f"test_x{ENCODERS[e]}" in file for e in there):
                    continue
                for encoder in there if len(there) > 1 else ():
                    end = ENCODERS[encoder]
                    yield Pictures(
                        dataset,
                        encoder,
                        part,
                        Labelled(unit(file[f"train_x{end}"]), file["train_y"].astype(np.int64)),
                        Labelled(unit(file[f"{part}_x{end}"]), file[f"{part}_y"].astype(np.int64)),
                    )


def unit(rows: np.ndarray) -> np.ndarray:
    return unit_rows(rows.astype(np.float32), "the features")


def accuracies(given: Pictures, shots: int, seed: int) -> list[float]:
    """Per cent of the heads on one draw; an encoder has no say in which pictures are drawn."""
    pool, test = given.pool, given.test
    rows = draw_support(given.dataset, tuple(map(str, range(len(pool.y)))), pool.y, shots, seed)
    X, y = pool.X[rows], pool.y[rows]
    gaussian = fit_gaussian(X, y, class_means(X, y, int(pool.y.max()) + 1))
    answers = (
        NCM().fit(X, y).predict(test.X),
        (test.X @ gaussian.weights.T + gaussian.bias).argmax(axis=1),
        LogisticProbe().fit(X, y).predict(test.X),
    )
    return [100 * float(np.mean(answer == test.y)) for answer in answers]


class Geometry(NamedTuple):
    """Squared length of the mean picture, distance of class means from it, scatter about them, effective dimension."""

    common: float
    between: float
    scatter: float
    d_eff: float


def geometry(pool: Labelled) -> Geometry:
    """The pool's; the error of the class means is subtracted from the distance between classes."""
    X, y = pool.X.astype(np.float64), pool.y
    C = int(y.max()) + 1
    means, trace = population_moments(X, y, C)
    square = np.array([unbiased_trace_of_square(X[y == c] - means[c]) for c in range(C)])
    centre = means.mean(axis=0)
    between = squared_norms(means - centre).sum() / (C - 1) - np.mean(trace / np.bincount(y))
    dimension = participation_ratio(trace, np.maximum(square, trace**2 / X.shape[1]))
    return Geometry(float(centre @ centre), float(between), float(trace.mean()), float(np.median(dimension)))


def published_dimensions() -> dict[tuple[str, str], str]:
    """The paper's effective dimensions by dataset and encoder."""
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["id"].endswith(".d_eff")]
    keys = [dict(part.split("=") for part in row["restrict"].split("; ") if "=" in part) for row in rows]
    names = {"Aircraft": "fgvc-aircraft", "Caltech101": "caltech101", "Food101": "food101", "DTD": "dtd"}
    return {(names.get(k["dataset"], ""), k["backbone"]): row["value"] for k, row in zip(keys, rows, strict=True)}


def main(folder: Path) -> None:
    found = {given[:3]: given for given in pictures(folder)}
    heading = [f"{head}, K={k}" for k in SHOTS for head in HEADS]
    print(f"| set | encoder | judged on | {' | '.join(heading)} |\n|" + "---|" * (3 + len(heading)))
    means: dict[tuple[str, str, str], np.ndarray] = {}
    for key, given in found.items():
        means[key] = np.array([np.mean([accuracies(given, k, seed) for seed in SEEDS], axis=0) for k in SHOTS])
        print(f"| {' | '.join(key)} | " + " | ".join(f"{x:.1f}" for x in means[key].ravel()) + " |", flush=True)
    print(f"\n| minus NCM | {' | '.join(h for h in heading if 'NCM' not in h)} | sets |\n|" + "---|" * 6)
    for encoder in ENCODERS:
        own = {key[0]: of - of[:, :1] for key, of in means.items() if key[1] == encoder}
        columns = [(row, head) for row in range(len(SHOTS)) for head in (1, 2)]
        line = [cluster_mean(np.array([of[c] for of in own.values()]), np.array(list(own))) for c in columns]
        shown = " | ".join(f"{e.mean:+.1f} [{e.low:+.1f}, {e.high:+.1f}]" for e in line).replace("-", "−")
        print(f"| {encoder} | {shown} | {len(own)} |")
    print("\n| pool | encoder | common | between | scatter | between/scatter | d_eff | d_eff, the paper |")
    print("|" + "---|" * 8)
    published = published_dimensions()
    for (dataset, encoder), given in {key[:2]: given for key, given in found.items()}.items():
        g = geometry(given.pool)
        shown = [f"{x:.3f}" for x in g[:3]] + [f"{g.between / g.scatter:.2f}", f"{g.d_eff:.0f}"]
        print(f"| {dataset} | {encoder} | {' | '.join(shown)} | {published.get((dataset, encoder), '–')} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
