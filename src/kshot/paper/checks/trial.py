"""What every check shares: how hard to try, and what it says in the end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

SEED = 20260726
# Largest |z| among some hundred independent normal statistics: exceeded once in about a thousand runs.
WORST_Z = 4.5

Tick: TypeAlias = Callable[[float], None]


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
        """A tolerance on a Monte Carlo mean grows with the root of what was saved."""
        return tolerance * float(np.sqrt(self.reduction))


FULL = Effort(1)
QUICK = Effort(20)


def generator(check: str) -> np.random.Generator:
    """Every check has its own stream, so that checks can be added without moving the others."""
    return np.random.default_rng([SEED, *check.encode()])


def worst_z(samples: np.ndarray, truth: float) -> float:
    """|mean − truth| in standard errors."""
    return float(abs(samples.mean() - truth) / (samples.std(ddof=1) / np.sqrt(len(samples))))
