"""Are the probabilities right? Calibration of gauss-probe and of CLAP: a table for docs/gauss-probe.md.

`python tools/calibration.py` reads features/ (`make clip-features`) and the bundled sets, and fits both heads on the
cells of the study `gauss` with two shots and more. `--draws N` takes the first N seeds only, `--dataset NAME` one set
(repeatable), `--pool` judges on pool pictures outside the shots instead of the test pictures. Everything but the
temperatures "at its best" is chosen by the shots; those minimise the cross-entropy of the very pictures that they are
judged on.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from kshot.bench.execution.cell import use_known_constants
from kshot.bench.study import Cell, MethodSpec, load_study
from kshot.episodes.stratum import load_prior, load_stratum
from kshot.features.store import Store
from kshot.methods import registry

ROOT = Path(__file__).resolve().parents[1]
BINS = 15
COLUMNS = (
    "CLAP as it is",
    "one temperature for the set",
    "one for every cell",
    "ours",
    "ours at its best",
    "CLAP's cross-entropy at its best",
    "ours, cross-entropy",
)


class Judged(NamedTuple):
    """One cell: the logits of both heads, and the labels."""

    clap: np.ndarray
    ours: np.ndarray
    y: np.ndarray


def calibration_error(probabilities: np.ndarray, y: np.ndarray) -> float:
    """In per cent, over bins of equally many pictures: |hits − confidence|, summed and divided by the pictures."""
    confidence, hits = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    return 100 * sum(abs(float(hits[b].sum() - confidence[b].sum())) for b in bins) / len(y)


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> float:
    return -float(log_softmax(logits, axis=1)[np.arange(len(y)), y].mean())


def best_scale(logits: list[np.ndarray], labels: list[np.ndarray]) -> float:
    """The factor that minimises the mean cross-entropy of the cells."""

    def mean(log: float) -> float:
        return float(
            np.mean([cross_entropy(np.exp(log) * z, y) for z, y in zip(logits, labels, strict=True)])
        )

    found: Any = minimize_scalar(mean, bounds=(-5, 5), method="bounded")
    return float(np.exp(found.x))


def judged(cells: list[Cell], pool: bool) -> Iterator[tuple[str, Judged]]:
    """Every cell's dataset and logits."""
    store = Store(ROOT / "features")
    for cell in cells:
        where = cell.dataset, cell.backbone
        stratum, prior = load_stratum(store, *where), load_prior(store, *where, cell.tier)
        episode = stratum.episode(cell.shots, cell.seed, prior.text)
        asked = episode.reveal(frozenset({"pool", "test"}))
        X, y = asked.pool if pool else asked.test
        if len(y) < BINS:
            continue
        scores = {}
        for key in ("clap", "gauss_probe"):
            head = registry.create(key)
            use_known_constants(head, MethodSpec(key, key), stratum, prior)
            scores[key] = episode.fit(head).scores(X)
        yield cell.dataset, Judged(scores["clap"], scores["gauss_probe"], y)


def row(cells: list[Judged]) -> np.ndarray:
    """The columns of one dataset, means over its cells."""
    whole = best_scale([cell.clap for cell in cells], [cell.y for cell in cells])
    found = []
    for clap, ours, y in cells:
        clap_best, ours_best = (best_scale([z], [y]) * z for z in (clap, ours))
        errors = (
            calibration_error(softmax(z, axis=1), y) for z in (clap, whole * clap, clap_best, ours, ours_best)
        )
        found.append((*errors, cross_entropy(clap_best, y), cross_entropy(ours, y)))
    return np.mean(found, axis=0)


if __name__ == "__main__":
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
    means = {dataset: row(of_set) for dataset, of_set in found.items()}
    print("| | " + " | ".join(COLUMNS) + " | cells |\n|" + "---|" * (len(COLUMNS) + 2))
    for dataset, numbers in means.items():
        shown = [f"{x:.2f}" for x in numbers[:5]] + [f"{x:.3f}" for x in numbers[5:]]
        print(f"| {dataset} | " + " | ".join(shown) + f" | {len(found[dataset])} |")
    pairs = {
        "one temperature for the set": (3, 1),
        "one for every cell": (3, 2),
        "both at their best": (4, 2),
    }
    for name, (ours, clap) in (pairs | {"cross-entropy": (6, 5)}).items():
        print(
            f"no worse than CLAP, {name}: {sum(x[ours] <= x[clap] for x in means.values())} of {len(means)} sets"
        )
