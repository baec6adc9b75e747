"""The unbiased tr(Sigma²): equal to the sum over distinct rows that defines it, and unbiased."""

from itertools import permutations

import numpy as np

from kshot.paper.checks.simulate import power_law
from kshot.paper.checks.trial import WORST_Z, Effort, Tick, Verdict, generator, worst_z
from kshot.theory import sampling

TITLE = "Unbiased tr(Sigma²)"
REPLICATES = 20_000
DIMENSION = 8


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    gaps = []
    for n in (4, 5, 6):
        rows = 2 + rng.normal(size=(n, DIMENSION))
        gaps.append(abs(sampling.unbiased_trace_of_square(rows) / _by_definition(rows) - 1))
    tick(0.1)
    scale = np.sqrt(power_law(DIMENSION, 1.0, 1.0))
    # A skewed law with a mean far from zero: the estimator assumes neither normality nor centring.
    draws = 3.0 + scale * (rng.exponential(size=(effort.replicates(REPLICATES), 6, DIMENSION)) - 1)
    estimates = np.array([sampling.unbiased_trace_of_square(draw) for draw in draws])
    tick(1.0)
    return [
        Verdict("tr(Sigma²): closed form against its sum, relative", float(max(gaps)), 1e-10),
        Verdict("tr(Sigma²): unbiased at any mean, |z|", worst_z(estimates, float((scale**4).sum())), WORST_Z),
    ]


def _by_definition(rows: np.ndarray) -> float:
    """Mean of ⟨x_i − x_j, x_k − x_l⟩²/4 over distinct i, j, k, l."""
    terms = [((rows[i] - rows[j]) @ (rows[k] - rows[l])) ** 2 for i, j, k, l in permutations(range(len(rows)), 4)]
    return float(np.mean(terms)) / 4
