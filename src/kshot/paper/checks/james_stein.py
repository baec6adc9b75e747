"""The classical rule: of all multiples of tau², (d − 2) has the least squared error (Stein's identity)."""

import numpy as np

from kshot.paper.checks.trial import WORST_Z, Effort, Tick, Verdict, generator
from kshot.solvers.rows import squared_norms
from kshot.theory import blend_error

TITLE = "Classical James–Stein coefficient"
DIMENSIONS = (4, 6, 12)
REPLICATES = 2_000_000
TAU2 = 0.3


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    worst = 0.0
    n = effort.replicates(REPLICATES)
    for index, d in enumerate(DIMENSIONS):
        theta = np.full(d, 1.5)
        X = theta + np.sqrt(TAU2) * rng.standard_normal((n, d))
        d2 = squared_norms(X)
        # Risk of 1 − c·tau²/|X|² is a parabola in c; its vertex is estimated by a ratio of means.
        slope, curve = ((X - theta) * X).sum(axis=1) / d2, TAU2 / d2
        vertex = slope.mean() / curve.mean()
        error = (slope - vertex * curve).std() / np.sqrt(n) / curve.mean()
        far = np.array([50.0 * d * TAU2])
        used = (1 - blend_error.classical_james_stein_ratio(TAU2, far, d)) * far / TAU2
        worst = max(worst, float(abs(used[0] - vertex) / error))
        tick((index + 1) / len(DIMENSIONS))
    clipped = np.max(blend_error.classical_james_stein_ratio(TAU2, np.array([1e-3]), 6))
    plane = blend_error.classical_james_stein_ratio(TAU2, np.array([1e-3, 1.0]), 2)
    return [
        Verdict("Eq. 8: d − 2 minimises the risk, |z|", worst, WORST_Z),
        Verdict("Eq. 8: positive part, and no shrinkage at d = 2", float(clipped + np.ptp(plane)), 0.0),
    ]
