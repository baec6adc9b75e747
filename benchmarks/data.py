"""CLIP-like few-shot problems, float32, from a seed."""

from typing import NamedTuple

import numpy as np

from benchmarks import SMALL


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    text: np.ndarray
    queries: np.ndarray
    labels: np.ndarray


def data(classes: int, shots: int, dim: int = 512, n: int = 1000, seed: int = 0) -> Data:
    """Classes in a cone; text is displaced by a common offset and an error of its own. Small where `--small` is."""
    if SMALL:
        classes, dim, n = min(classes, 20), min(dim, 64), min(n, 1000)
    rng = np.random.default_rng(seed)

    def noise(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32) / np.float32(np.sqrt(dim))

    centres = 1.5 * noise(dim) + 0.8 * noise(classes, dim)
    text = unit(0.4 * (centres - centres.mean(0)) + 0.3 * noise(classes, dim) + 1.5 * noise(dim))
    y, labels = np.repeat(np.arange(classes), shots), rng.integers(0, classes, n)
    return Data(unit(centres[y] + noise(len(y), dim)), y, text, unit(centres[labels] + noise(n, dim)), labels)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def noisy(problem: Data, spread: float) -> Data:
    """Classes that overlap."""
    rng = np.random.default_rng(1)

    def shaken(rows: np.ndarray) -> np.ndarray:
        return unit(rows + spread * unit(rng.standard_normal(rows.shape, np.float32)))

    return problem._replace(X=shaken(problem.X), queries=shaken(problem.queries))
