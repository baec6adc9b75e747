"""Margins of all class pairs at once against the formula applied pair by pair."""

import numpy as np

from benchmarks import SMALL
from benchmarks.measure import best_seconds, peak_gigabytes, verdict
from kshot.theory.capacity import capacity

CLASSES, DIM = (50, 64) if SMALL else (1000, 512)
BASELINE_PAIRS = 200


def problem(seed: int = 0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(CLASSES, DIM)) / np.sqrt(DIM)
    text = means + rng.normal(size=DIM) + rng.normal(size=(CLASSES, DIM)) / np.sqrt(DIM)
    root = rng.normal(size=(DIM, DIM)) / np.sqrt(DIM)
    return means, text, root @ root.T + 0.1 * np.eye(DIM)


def pair_by_pair(means, text, covariance, pairs):
    """Theorem 2 from each pair's own vectors; the inverse is computed once."""
    inverse = np.linalg.inv(covariance)
    found = np.empty((len(pairs), 3))
    for row, (i, j) in enumerate(pairs):
        u, gap = means[i] - means[j], (text[i] - means[i]) - (text[j] - means[j])
        vectors = np.stack([u, gap / 2])
        a, q = vectors @ u, vectors @ covariance @ vectors.T
        s = (a[0] * q[0, 1] - a[1] * q[0, 0]) / (2 * (a[1] * q[0, 1] - a[0] * q[1, 1]))
        directions = u + np.array([0.0, 1.0, np.clip(s, 0, 1)])[:, None] * gap
        margins = directions @ u / np.sqrt(np.einsum("sd,de,se->s", directions, covariance, directions, optimize=True))
        found[row] = max(margins.max(), 0) ** 2, a @ np.linalg.solve(q, a), u @ inverse @ u
    return found


def main() -> int:
    means, text, covariance = problem()
    i, j = np.triu_indices(CLASSES, 1)
    ours = best_seconds(lambda: capacity(means, text, covariance))
    peak = peak_gigabytes()
    sample = np.random.default_rng(1).integers(0, len(i), BASELINE_PAIRS)
    pairs = list(zip(i[sample], j[sample], strict=True))
    theirs = best_seconds(lambda: pair_by_pair(means, text, covariance, pairs), repeats=2) * len(i) / BASELINE_PAIRS
    found = capacity(means, text, covariance)
    together = np.stack([found.path, found.plane, found.full], axis=1)[sample]
    worst = float(np.abs(together / pair_by_pair(means, text, covariance, pairs) - 1).max())
    print(f"C={CLASSES}, d={DIM}, float64, one thread; baseline timed on {BASELINE_PAIRS} of {len(i)} pairs")
    print(f"together {ours:.2f} s, one by one {theirs:.1f} s, peak {peak:.2f} GB (allowed 2)")
    print(f"largest relative difference: {worst:.1e}")
    return verdict("capacity of all pairs", theirs / ours, 20) + (peak > 2) + (worst > 1e-8)
