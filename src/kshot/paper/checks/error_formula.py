"""V1: Φ(−m/2) is the error of a direction at its best threshold; the blend's own threshold is no better."""

import numpy as np

from kshot.paper.checks.geometries import Pair, random_pair
from kshot.paper.checks.trial import Effort, Tick, Verdict, generator
from kshot.theory import capacity

TITLE = "Error of a direction"
DIMENSION, DECAY = 40, 1.0
SAMPLES = 400_000
POINTS = (0.0, 0.25, 0.5, 0.75, 1.0)
BATCHES = 20


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    pair = _overlapping(random_pair(rng, DIMENSION, DECAY))
    root = np.linalg.cholesky(pair.covariance)
    best, own = np.zeros(len(POINTS)), np.zeros(len(POINTS))
    batch = effort.replicates(SAMPLES) // (2 * BATCHES)
    for done in range(BATCHES):
        plus, minus = pair.means[:, None, :] + rng.standard_normal((2, batch, DIMENSION)) @ root.T
        for index, s in enumerate(POINTS):
            prototypes = s * pair.text + (1 - s) * pair.means
            w = prototypes[0] - prototypes[1]
            for wrong, middle in ((best, pair.means.mean(axis=0)), (own, prototypes.mean(axis=0))):
                wrong[index] += np.count_nonzero(plus @ w < w @ middle)
                wrong[index] += np.count_nonzero(minus @ w > w @ middle)
        tick((done + 1) / BATCHES)
    n = 2 * batch * BATCHES
    forms = capacity.pair_forms(pair.means, pair.text, pair.covariance)
    margins = np.array([capacity.path_margin(np.array([s]), forms)[0] for s in POINTS])
    gap = np.abs(best / n - capacity.separation_error(margins**2)).max()
    return [
        Verdict("V1: error against Φ(−m/2)", float(gap), effort.widen(3e-3)),
        Verdict("V1: prototype-midpoint threshold gains", float(((best - own) / n).max()), 0.0),
    ]


def _overlapping(pair: Pair) -> Pair:
    """The same pair with so much spread that the means' own direction errs at Φ(−1), about 16 %."""
    return Pair(pair.means, pair.text, pair.covariance * (pair.margin(pair.u) / 2) ** 2)
