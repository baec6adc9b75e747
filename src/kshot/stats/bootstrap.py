"""Cluster bootstrap: datasets are resampled, because cells of one dataset share pictures, classes and text."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from kshot.types import Array

RESAMPLES = 10_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over n cells in G clusters; no interval where G is 1."""

    mean: float
    low: float | None
    high: float | None
    n: int
    clusters: int


def cluster_sums(
    values: Float[Array, " n"], clusters: Shaped[Array, " n"]
) -> tuple[Float[Array, " G"], Float[Array, " G"]]:
    """Per cluster: the sum of its values and their number."""
    _, group = np.unique(clusters, return_inverse=True)
    return np.bincount(group, values), np.bincount(group).astype(float)


def resampled_means(
    sums: Float[Array, " G"], sizes: Float[Array, " G"], resamples: int = RESAMPLES, seed: int = 0
) -> Float[Array, " R"]:
    """Means over cells after drawing G clusters with replacement, `resamples` times."""
    draws = np.random.default_rng(seed).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), resamples)
    return (draws @ sums) / (draws @ sizes)


def cluster_mean(values: Float[Array, " n"], clusters: Shaped[Array, " n"], seed: int = 0) -> Estimate:
    """The mean with a Student-t interval on the bootstrap standard error, G−1 degrees of freedom.

    With ten clusters the percentile interval covers 89 % instead of 95 %; this one 93.7–94.8 % (study, Sec. 5.4).
    """
    from scipy.stats import t

    known = np.isfinite(values)
    values, clusters = values[known], clusters[known]
    if not len(values):
        return Estimate(float("nan"), None, None, 0, 0)
    sums, sizes = cluster_sums(values, clusters)
    mean = float(values.mean())
    if len(sums) < 2:
        return Estimate(mean, None, None, len(values), len(sums))
    error = resampled_means(sums, sizes, seed=seed).std(ddof=1)
    reach = float(t.ppf((1 + LEVEL) / 2, len(sums) - 1) * error)
    return Estimate(mean, mean - reach, mean + reach, len(values), len(sums))
