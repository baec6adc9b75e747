"""Parts of every check: replicates, verdicts, and simulated Gaussian supports."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kshot.solvers import rows

SEED = 20260726
# Largest |z| among some hundred independent normal statistics: exceeded once in about a thousand runs.
WORST_Z = 4.5
CHUNK_VALUES = 2_000_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim holds when its worst measured discrepancy stays within the tolerance."""

    claim: str
    estimate: float
    tolerance: float

    @property
    def passed(self) -> bool:
        return bool(self.estimate <= self.tolerance)


@dataclass(frozen=True, slots=True)
class Effort:
    """The study's replicates divided by `reduction`."""

    reduction: int

    def replicates(self, full: int) -> int:
        return max(1, full // self.reduction)

    def widen(self, tolerance: float) -> float:
        """Tolerance of a Monte Carlo mean, times the root of `reduction`."""
        return tolerance * float(np.sqrt(self.reduction))


FULL = Effort(1)
QUICK = Effort(20)


@dataclass(frozen=True, slots=True)
class Check:
    """A Monte Carlo check. Its title seeds its own random stream, so that a new check changes no other."""

    title: str
    measure: Callable[[np.random.Generator, Effort], list[Verdict]]

    def __call__(self, effort: Effort) -> list[Verdict]:
        return self.measure(np.random.default_rng([SEED, *self.title.encode()]), effort)


def worst_z(samples: np.ndarray, truth: float) -> float:
    """|mean − truth| in standard errors."""
    return float(abs(samples.mean() - truth) / (samples.std(ddof=1) / np.sqrt(len(samples))))


def power_law(d: int, decay: float, trace: float) -> np.ndarray:
    """Eigenvalues proportional to rank^−decay that sum to `trace`."""
    values = np.arange(1, d + 1, dtype=float) ** -decay
    return values * (trace / values.sum())


def support_means(
    rng: np.random.Generator, spectrum: np.ndarray, shots: int, replicates: int
) -> tuple[np.ndarray, np.ndarray]:
    """(mean − mu*, v̂) of each of `replicates` Gaussian supports with this diagonal covariance.

    v̂ comes from `solvers.rows.mean_variances`, the code that the methods run; replicates play the part of
    classes.
    """
    d = len(spectrum)
    chunk = max(1, CHUNK_VALUES // (shots * d))
    all_means, variances = [], []
    for start in range(0, replicates, chunk):
        n = min(chunk, replicates - start)
        X = rng.standard_normal((n * shots, d)) * np.sqrt(spectrum)
        y = np.repeat(np.arange(n), shots)
        means = rows.class_means(X, y, n)
        all_means.append(means)
        variances.append(rows.mean_variances(X, y, means))
    return np.concatenate(all_means), np.concatenate(variances)
