"""Eq. 18: a ratio fitted with K − 1 shots, carried to K, is the optimum at K."""

import numpy as np

from kshot.paper.checks.trial import Effort, Tick, Verdict, generator
from kshot.solvers import shrinkage as plug_in
from kshot.theory import blend_error

TITLE = "K-correction"
TRIALS = 200


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    grid = np.linspace(0, 1, 100_001)
    gaps = []
    for index in range(TRIALS):
        g2, trace, shots = (float(rng.uniform(0.05, 2)), float(rng.uniform(0.05, 2)), float(rng.integers(2, 17)))
        before, after = (
            float(grid[np.argmin(blend_error.blend_risk(grid, g2, trace / k))]) for k in (shots - 1, shots)
        )
        gaps.append(abs(plug_in.correct_for_shots(before, shots) - after))
        tick((index + 1) / TRIALS)
    return [
        Verdict("K-correction: optimum at K − 1 becomes that at K", max(gaps), 5e-5),
        Verdict("K-correction: a ratio of 1 stays 1", abs(plug_in.correct_for_shots(1.0, 4.0) - 1), 0.0),
    ]
