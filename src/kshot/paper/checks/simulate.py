"""Gaussian shots around a class mean, as the theory assumes them; replicates play the part of classes."""

from collections.abc import Iterator

import numpy as np

from kshot.solvers import rows, shrinkage

CHUNK_VALUES = 2_000_000


def power_law(d: int, decay: float, trace: float) -> np.ndarray:
    """Eigenvalues proportional to rank^−decay that sum to `trace`."""
    values = np.arange(1, d + 1, dtype=float) ** -decay
    return values * (trace / values.sum())


def support_means(
    rng: np.random.Generator, spectrum: np.ndarray, shots: int, replicates: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(mean − mu*, v̂) of `replicates` supports with a diagonal covariance, in chunks.

    v̂ comes from `solvers.shrinkage.mean_variances`, the code that the methods run.
    """
    d = len(spectrum)
    chunk = max(1, CHUNK_VALUES // (shots * d))
    scale = np.sqrt(spectrum)
    for start in range(0, replicates, chunk):
        n = min(chunk, replicates - start)
        X = rng.standard_normal((n * shots, d)) * scale
        y = np.repeat(np.arange(n), shots)
        means = rows.class_means(X, y, n)
        yield means, shrinkage.mean_variances(X, y, means)
