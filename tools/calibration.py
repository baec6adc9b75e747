"""Are the probabilities right? Calibration of gauss-probe and of CLAP: a table for docs/gauss-probe.md.

`python tools/calibration.py` reads features/ (`make clip-features`) and the bundled sets, and fits both heads on the
cells of the study `gauss` with two shots and more. `--draws N` takes the first N seeds only, `--pool` judges on pool
pictures outside the shots instead of the test pictures. Everything but the temperatures "at its best" is chosen by
the shots; those minimise the cross-entropy of the very pictures that they are judged on.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

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
    "CLAP at its best",
    "ours",
    "ours at its best",
    "CLAP's cross-entropy at its best",
    "ours, cross-entropy",
)


def calibration_error(probabilities: np.ndarray, y: np.ndarray) -> float:
    """In per cent, over bins of equally many pictures: |hits − confidence|, summed and divided by the pictures."""
    confidence, hits = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    return 100 * sum(abs(float(hits[b].sum() - confidence[b].sum())) for b in bins) / len(y)


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> float:
    return -float(log_softmax(logits, axis=1)[np.arange(len(y)), y].mean())


def best_scale(logits: np.ndarray, y: np.ndarray) -> float:
    found = minimize_scalar(
        lambda log: cross_entropy(np.exp(log) * logits, y), bounds=(-5, 5), method="bounded"
    )
    return float(np.exp(found.x))


def measured(cells: list[Cell], pool: bool) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Every cell's dataset and columns."""
    store = Store(ROOT / "features")
    for cell in cells:
        where = cell.dataset, cell.backbone
        stratum, prior = load_stratum(store, *where), load_prior(store, *where, cell.tier)
        episode = stratum.episode(cell.shots, cell.seed, prior.text)
        asked = episode.reveal(frozenset({"pool", "test"}))
        X, y = asked.pool if pool else asked.test
        if len(y) < BINS:
            continue
        logits = []
        for key in ("clap", "gauss_probe"):
            head = registry.create(key)
            use_known_constants(head, MethodSpec(key, key), stratum, prior)
            logits.append(episode.fit(head).scores(X))
        clap, ours = logits
        clap_best, ours_best = best_scale(clap, y) * clap, best_scale(ours, y) * ours
        errors = (calibration_error(softmax(z, axis=1), y) for z in (clap, clap_best, ours, ours_best))
        yield cell.dataset, (*errors, cross_entropy(clap_best, y), cross_entropy(ours, y))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--pool", action="store_true")
    given = parser.parse_args()
    cells = [cell for cell in load_study("gauss").cells() if cell.shots > 1 and cell.seed < given.draws]
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for dataset, row in measured(cells, given.pool):
        found[dataset].append(row)
    print("| | " + " | ".join(COLUMNS) + " | cells |\n|" + "---|" * (len(COLUMNS) + 2))
    means = {dataset: np.mean(rows, axis=0) for dataset, rows in found.items()}
    for dataset, row in means.items():
        numbers = [f"{x:.2f}" for x in row[:4]] + [f"{x:.3f}" for x in row[4:]]
        print(f"| {dataset} | " + " | ".join(numbers) + f" | {len(found[dataset])} |")
    no_worse = sum(row[2] <= row[1] for row in means.values())
    print(f"\nno worse than CLAP at its best: {no_worse} of {len(means)} sets;", end=" ")
    print(f"at its own best: {sum(row[3] <= row[1] for row in means.values())};", end=" ")
    print(f"by cross-entropy: {sum(row[5] <= row[4] for row in means.values())}")
