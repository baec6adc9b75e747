"""Sample-level tests: two heads on the same pictures differ only where exactly one of them is right."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from kshot.stats.crossed import hits_of
from kshot.stats.panel import Panel
from kshot.types import Array

ALPHA = 0.05


@dataclass(frozen=True)
class SampleContrast:
    """Per cell: pictures that only the first or only the second method gets right, and the Holm-adjusted p."""

    first: str
    second: str
    only_first: Int[Array, " c"]
    only_second: Int[Array, " c"]
    pictures: Int[Array, " c"]
    p: Float[Array, " c"]

    def decided_for(self) -> tuple[int, int, int]:
        """Cells in favour of the first, of the second, and undecided at 5 % after Holm."""
        decided = self.p < ALPHA
        first = int(np.count_nonzero(decided & (self.only_first > self.only_second)))
        second = int(np.count_nonzero(decided)) - first
        return first, second, int(np.count_nonzero(~decided))


def sample_contrast(panel: Panel, first: str, second: str) -> SampleContrast:
    """McNemar's exact test in every cell where both methods left their hits."""
    contrasts = [
        (np.count_nonzero(one > two), np.count_nonzero(two > one), len(one))
        for one, two in zip(hits_of(panel, first), hits_of(panel, second), strict=True)
        if one is not None and two is not None
    ]
    only_first, only_second, pictures = np.array(contrasts, int).reshape(-1, 3).T
    return SampleContrast(first, second, only_first, only_second, pictures, holm(mcnemar(only_first, only_second)))


def mcnemar(only_first: Int[Array, " c"], only_second: Int[Array, " c"]) -> Float[Array, " c"]:
    """Exact two-sided p: under equality the discordant pictures fall on either side like a fair coin."""
    from scipy.stats import binom

    both, fewer = only_first + only_second, np.minimum(only_first, only_second)
    return np.minimum(1.0, 2 * binom.cdf(fewer, both, 0.5))


def holm(p: Float[Array, " m"]) -> Float[Array, " m"]:
    """Adjusted p-values by Holm's step-down rule (Scandinavian Journal of Statistics, 1979)."""
    order = np.argsort(p, kind="stable")
    stepped = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted
