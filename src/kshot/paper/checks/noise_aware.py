"""Corollary 2: the shrinkage that risk wants when the means are estimated."""

import numpy as np

from kshot.paper.checks.trial import WORST_Z, Effort, Tick, Verdict, generator
from kshot.solvers.rows import squared_norms
from kshot.theory import two_class

TITLE = "Noise-aware shrinkage"
GEOMETRIES = 300
DIMENSION = 2000
SIGMA2 = 1.0
SUPPORTS = 20_000


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    grid = np.linspace(0, 1, 20_001)
    shortfall, misplaced = [], []
    count = effort.replicates(GEOMETRIES)
    for index in range(count):
        u, delta = rng.normal(size=(2, 8))
        pair = two_class.pair_geometry(u, rng.uniform(0.1, 1.5) * delta, np.zeros(8))
        v = float(rng.uniform(0.01, 8))
        curve = np.asarray(two_class.deflection(grid, pair, SIGMA2, v))
        s = two_class.noise_aware_shrinkage(pair, v)
        shortfall.append(curve.max() - two_class.deflection(s, pair, SIGMA2, v))
        misplaced.append(abs(s - grid[curve.argmax()]))
        tick(0.5 * (index + 1) / count)
    simulated = _deflection_z(rng, effort)
    tick(1.0)
    limits = two_class.PairGeometry(u2=2.0, delta2=1.5, gamma=0.4)
    agreeing = two_class.PairGeometry(u2=2.0, delta2=1e-14, gamma=0.0)
    return [
        Verdict("Cor. 2: deflection lost against the best on a grid", float(max(shortfall)), 1e-8),
        Verdict("Cor. 2: s* against argmax on the grid", max(misplaced), 1e-4),
        Verdict("Cor. 2: expected margin and variance, |z|", simulated, WORST_Z),
        Verdict("Cor. 2: no noise, no shrinkage", two_class.noise_aware_shrinkage(limits, 0.0), 0.0),
        Verdict("Cor. 2: agreeing text, all shrinkage", 1 - two_class.noise_aware_shrinkage(agreeing, 0.1), 1e-9),
    ]


def _deflection_z(rng: np.random.Generator, effort: Effort) -> float:
    """Margin and input variance over supports: estimated means in many dimensions, sampled through
    their four relevant coordinates (u, delta and the noise's length in the rest)."""
    u, delta = np.array([1.2, 0.0]), np.array([0.3, 0.5])
    pair = two_class.pair_geometry(u, delta, np.zeros(2))
    n, v = effort.replicates(SUPPORTS), 1.5
    coordinate = np.sqrt(v / DIMENSION)
    z = []
    for s in (0.0, 0.3, 0.8):
        plus, minus = coordinate * rng.standard_normal((2, n, 2))
        rest = rng.chisquare(DIMENSION - 2, n) * 2 * v / DIMENSION
        w = u + 2 * s * delta + (1 - s) * (plus - minus)
        centre = u / 2 - (1 - s) * (plus + minus) / 2
        margin = np.einsum("ij,ij->i", centre, w)
        variance = SIGMA2 * (squared_norms(w) + (1 - s) ** 2 * rest)
        truth = two_class.noisy_score_variance(s, pair, SIGMA2, v)
        expected = two_class.deflection(s, pair, SIGMA2, v) * np.sqrt(truth)
        for sample, value in ((margin, expected), (variance, truth)):
            z.append(abs(sample.mean() - value) / (sample.std() / np.sqrt(n)))
    return float(max(z))
