"""Are the probabilities right? Calibration of gauss-probe and of CLAP: the tables of docs/gauss-probe.md.

`python -m tools.calibration` reads features/ (`make clip-features`) and the bundled sets, and fits both heads on the
cells of the study `gauss` with two shots and more. `--draws N` takes the first N seeds only, `--dataset NAME` one set
(repeatable), `--pool` judges on pool pictures outside the shots instead of the test pictures. Logits are kept in
records/calibration and not computed again: remove its files of a head that has changed.

Everything but the temperatures "at its best" is chosen by the shots; those minimise the cross-entropy of the very
pictures that they are judged on. The calibration error has two readings. "By cell": bins of one cell's pictures, then
the mean over cells; with few pictures most of it is chance, alike for every head. "By shots": the pictures of all draws
of one set and number of shots share their bins, then the mean over numbers of shots; less of it is chance.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from kshot.bench.study import Cell, load_study
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.files import write_atomically
from kshot.methods import registry

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "records" / "calibration"
BINS = 15
READINGS = (
    "CLAP as it is",
    "CLAP, one temperature for the set",
    "CLAP, one for every cell",
    "ours",
    "ours at its best",
)
CROSS_ENTROPIES = ("CLAP's cross-entropy at its best", "ours, cross-entropy")


class Judged(NamedTuple):
    """One cell: the logits of both heads, and the labels."""

    shots: int
    clap: np.ndarray
    ours: np.ndarray
    y: np.ndarray


class Answers(NamedTuple):
    """How sure a head was of its answers, and which were right."""

    confidence: np.ndarray
    hits: np.ndarray


def answers(logits: np.ndarray, y: np.ndarray) -> Answers:
    probabilities = softmax(logits, axis=1)
    return Answers(probabilities.max(axis=1), probabilities.argmax(axis=1) == y)


def calibration_error(given: Answers) -> float:
    """In per cent, over bins of equally many pictures: |hits − confidence|, summed and divided by the pictures."""
    bins = np.array_split(np.argsort(given.confidence, kind="stable"), BINS)
    gaps = (abs(float(given.hits[b].sum() - given.confidence[b].sum())) for b in bins)
    return 100 * sum(gaps) / len(given.hits)


def together(several: list[Answers]) -> Answers:
    return Answers(*(np.concatenate(part) for part in zip(*several, strict=True)))


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> float:
    return -float(log_softmax(logits, axis=1)[np.arange(len(y)), y].mean())


def best_scale(logits: list[np.ndarray], labels: list[np.ndarray]) -> float:
    """The factor that minimises the mean cross-entropy of the cells."""

    def mean(log: float) -> float:
        return float(np.mean([cross_entropy(np.exp(log) * z, y) for z, y in zip(logits, labels, strict=True)]))

    found: Any = minimize_scalar(mean, bounds=(-5, 5), method="bounded")
    return float(np.exp(found.x))


def judged(cells: list[Cell], pool: bool) -> Iterator[tuple[str, Judged]]:
    """Every cell's dataset and logits."""
    store = Store(ROOT / "features")
    for cell in cells:
        where = cell.dataset, cell.backbone
        stratum, prior = load_stratum(store, *where), load_prior(store, *where, cell.tier)
        episode = stratum.episode(cell.shots, cell.seed, prior, cell.profile)
        asked = episode.reveal(frozenset({"pool", "test"}))
        X, y = asked.pool if pool else asked.test
        if len(y) < BINS:
            continue
        scores = {}
        for key in ("clap", "gauss_probe"):
            name = "-".join([cell.dataset, str(cell.shots), str(cell.seed), "pool" if pool else "test", key])
            kept = KEPT / f"{name}.npy"
            if not kept.exists():
                made = episode.fit(registry.create(key)).scores(X)
                KEPT.mkdir(parents=True, exist_ok=True)
                write_atomically(kept, lambda path, made=made: save(path, made))
            scores[key] = np.load(kept)
        yield cell.dataset, Judged(cell.shots, scores["clap"], scores["gauss_probe"], y)


def save(path: Path, scores: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, scores)


class Row(NamedTuple):
    """One dataset: calibration errors by cell and by shots, and cross-entropies, means over its cells."""

    by_cell: np.ndarray
    by_shots: np.ndarray
    cross_entropies: np.ndarray


def row(cells: list[Judged]) -> Row:
    whole = best_scale([cell.clap for cell in cells], [cell.y for cell in cells])
    read: dict[int, list[list[Answers]]] = defaultdict(list)
    cross_entropies = []
    for shots, clap, ours, y in cells:
        clap_best, ours_best = (best_scale([z], [y]) * z for z in (clap, ours))
        read[shots].append([answers(z, y) for z in (clap, whole * clap, clap_best, ours, ours_best)])
        cross_entropies.append((cross_entropy(clap_best, y), cross_entropy(ours, y)))
    by_cell = [[calibration_error(one) for one in cell] for of_shots in read.values() for cell in of_shots]
    by_shots = [
        [calibration_error(together(list(draws))) for draws in zip(*of_shots, strict=True)]
        for of_shots in read.values()
    ]
    return Row(*(np.mean(part, axis=0) for part in (by_cell, by_shots, cross_entropies)))


def print_tables(rows: dict[str, Row], sizes: dict[str, int]) -> None:
    for reading in ("by_cell", "by_shots"):
        print(f"\nExpected calibration error, {reading.replace('_', ' ')}\n")
        print("| | " + " | ".join((*READINGS, *CROSS_ENTROPIES)) + " | cells |\n|" + "---|" * 9)
        for dataset, found in rows.items():
            shown = [f"{x:.2f}" for x in getattr(found, reading)]
            shown += [f"{x:.3f}" for x in found.cross_entropies]
            print(f"| {dataset} | " + " | ".join(shown) + f" | {sizes[dataset]} |")
        print()
        for name, ours, clap in (
            ("one temperature for the set", 3, 1),
            ("one for every cell", 3, 2),
            ("both at their best", 4, 2),
        ):
            wins = sum(getattr(x, reading)[ours] <= getattr(x, reading)[clap] for x in rows.values())
            print(f"no worse than CLAP, {name}: {wins} of {len(rows)} sets")
    wins = sum(x.cross_entropies[1] <= x.cross_entropies[0] for x in rows.values())
    print(f"no worse than CLAP at its best, cross-entropy: {wins} of {len(rows)} sets")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--dataset", action="append")
    parser.add_argument("--pool", action="store_true")
    given = parser.parse_args()
    cells = [cell for cell in load_study("gauss").cells() if cell.shots > 1 and cell.seed < given.draws]
    cells = [cell for cell in cells if given.dataset is None or cell.dataset in given.dataset]
    found: dict[str, list[Judged]] = defaultdict(list)
    for dataset, one in judged(cells, given.pool):
        found[dataset].append(one)
    rows = {dataset: row(of_set) for dataset, of_set in found.items()}
    print_tables(rows, {dataset: len(of_set) for dataset, of_set in found.items()})


if __name__ == "__main__":
    main()
