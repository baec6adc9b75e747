"""Do the intervals keep their promise? Simulated coverage with the variances of a real contrast (paper, Sec. 5.4)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from kshot.stats.bootstrap import LEVEL, cluster_sums, critical_value, draw_counts
from kshot.types import Array

BLOCK = 250


@dataclass(frozen=True, slots=True)
class Design:
    """Clusters of given sizes; normal effects per cluster and noise per cell, both as standard deviations."""

    sizes: tuple[int, ...]
    between: float
    within: float


# The paper's headline, CLAP against the oracle ratio: ten datasets of 125 cells, one of them thinned to 75. Its
# published strata spread by 1.65 points between datasets and 0.86 between backbones within one; draws add a little.
PAPER_DESIGN = Design(sizes=(125,) * 9 + (75,), between=1.65, within=1.1)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often a nominal 95 % interval held the true mean, and the Monte Carlo error of that figure."""

    percentile: float
    student_t: float
    trials: int

    @property
    def error(self) -> float:
        return float(np.sqrt(self.student_t * (1 - self.student_t) / self.trials))


def matched_design(differences: Float[Array, " n"], clusters: Shaped[Array, " n"]) -> Design:
    """Sizes and variance components of measured differences (one-way analysis of variance, moments)."""
    known = np.isfinite(differences)
    sums, counts = cluster_sums(differences[known][:, None], clusters[known])
    sizes, means = counts[:, 0], sums[:, 0] / counts[:, 0]
    group = np.unique(clusters[known], return_inverse=True)[1]
    residue = differences[known] - means[group]
    within = float(residue @ residue) / max(len(residue) - len(sizes), 1)
    grand = differences[known].mean()
    typical = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(sizes) - 1)
    between = (float(sizes @ (means - grand) ** 2) / (len(sizes) - 1) - within) / typical
    return Design(tuple(int(s) for s in sizes), float(np.sqrt(max(between, 0))), float(np.sqrt(within)))


def simulate_coverage(design: Design, trials: int = 20_000, resamples: int = 1_000, seed: int = 0) -> Coverage:
    """Draw worlds whose true mean is zero and count the intervals that hold it."""
    rng = np.random.default_rng(seed)
    sizes = np.array(design.sizes, float)
    held = np.zeros(2, int)
    for start in range(0, trials, BLOCK):
        count = min(BLOCK, trials - start)
        held += _held(_worlds(design, sizes, count, rng), sizes, resamples, start + 1)
    return Coverage(float(held[0] / trials), float(held[1] / trials), trials)


def _worlds(design: Design, sizes: Float[Array, " G"], count: int, rng: np.random.Generator) -> Array:
    """Cluster sums of `count` worlds; the noise of a sum of s cells has variance s·within²."""
    effects = rng.normal(0, design.between, (len(sizes), count))
    noise = rng.normal(0, design.within, (len(sizes), count))
    return sizes[:, None] * effects + np.sqrt(sizes)[:, None] * noise


def _held(sums: Float[Array, "G t"], sizes: Float[Array, " G"], resamples: int, seed: int) -> Int[Array, " 2"]:
    drawn = draw_counts(len(sizes), resamples, seed)
    means = (drawn @ sums) / (drawn @ sizes)[:, None]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    centre = sums.sum(axis=0) / sizes.sum()
    half = critical_value(len(sizes) - 1, LEVEL) * means.std(axis=0, ddof=1)
    return np.array([np.count_nonzero((low <= 0) & (high >= 0)), np.count_nonzero(np.abs(centre) <= half)])


if __name__ == "__main__":
    simulated = simulate_coverage(PAPER_DESIGN)
    print(f"nominal 95 %, the paper's design, {simulated.trials:,} simulated worlds:")
    print(f"percentile interval {100 * simulated.percentile:.1f} %")
    print(f"Student-t interval  {100 * simulated.student_t:.1f} % (Monte Carlo error {100 * simulated.error:.1f})")
