"""Many intervals at once: what remains when all of them are to hold together."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from kshot.stats.bootstrap import LEVEL, Estimate, half_width
from kshot.types import Array


def simultaneous(estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Bonferroni: each Student-t interval at level 1 − 0.05/m, so that all m hold at 95 % together."""
    with_interval = [e for e in estimates.values() if e.error is not None]
    level = 1 - (1 - LEVEL) / max(len(with_interval), 1)

    def widened(estimate: Estimate) -> Estimate:
        if estimate.error is None:
            return estimate
        half = half_width(estimate.error, estimate.G, level)
        return replace(estimate, low=estimate.mean - half, high=estimate.mean + half)

    return {name: widened(estimate) for name, estimate in estimates.items()}


def holm(p: Float[Array, " m"]) -> Float[Array, " m"]:
    """Adjusted p-values by Holm's step-down rule (Scandinavian Journal of Statistics, 1979)."""
    order = np.argsort(p, kind="stable")
    stepped = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted
