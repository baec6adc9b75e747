"""The 101-point ratio sweep against scoring 101 blended prototype sets by matrix product."""

import numpy as np

from benchmarks import SMALL
from benchmarks.measure import best_seconds, peak_gigabytes, verdict
from kshot.solvers.ratio_sweep import GRID, sweep_predictions
from kshot.solvers.rows import unit_rows

CLASSES, ROWS, DIM = (50, 1000, 64) if SMALL else (1000, 16_000, 512)
BASELINE_POINTS = GRID[::10]


def problem(seed: int = 0):
    rng = np.random.default_rng(seed)
    noise = 0.05
    text = unit_rows(rng.normal(size=(CLASSES, DIM)).astype(np.float32), "text")
    means = (0.5 * text + noise * rng.normal(size=(CLASSES, DIM))).astype(np.float32)
    labels = np.repeat(np.arange(CLASSES), ROWS // CLASSES)
    rows = 0.3 * means[labels] + 0.1 * text[labels] + noise * rng.normal(size=(ROWS, DIM))
    return unit_rows(rows.astype(np.float32), "rows"), means, text


def score_blends(X, means, text, grid):
    predicted = np.empty((len(grid), len(X)), np.int32)
    for index, lam in enumerate(grid.astype(np.float32)):
        prototypes = lam * means + (1 - lam) * text
        prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
        predicted[index] = (X @ prototypes.T).argmax(axis=1)
    return predicted


def main() -> int:
    X, means, text = problem()
    ours = best_seconds(lambda: sweep_predictions(X, means, text))
    peak = peak_gigabytes()
    theirs = best_seconds(lambda: score_blends(X, means, text, BASELINE_POINTS), repeats=2)
    theirs *= len(GRID) / len(BASELINE_POINTS)
    same = np.mean(sweep_predictions(X, means, text, BASELINE_POINTS) == score_blends(X, means, text, BASELINE_POINTS))
    print(
        f"C={CLASSES}, n={ROWS}, d={DIM}, float32, one thread; baseline timed at {len(BASELINE_POINTS)} of 101 ratios"
    )
    print(f"sweep {ours:.2f} s, {len(GRID)} matrix products {theirs:.2f} s, peak {peak:.2f} GB (allowed 2)")
    print(f"equal predictions: {100 * same:.4f} % (rounding decides ties between nearly equal classes)")
    return verdict("ratio sweep", theirs / ours, 12) + (peak > 2) + (same < 0.9999)
