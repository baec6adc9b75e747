"""V2: the closed form s* against a fine grid, and no shrinkage under isotropy."""

import numpy as np

from kshot.paper.checks.geometries import random_pairs
from kshot.paper.checks.trial import Effort, Tick, Verdict, generator
from kshot.theory import capacity

TITLE = "Best direction on the blend path"
GEOMETRIES = 300
GRID = np.linspace(0, 1, 20_000)


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    missed, isotropic = [], []
    count = effort.replicates(GEOMETRIES)
    for index, pair in enumerate(random_pairs(generator(TITLE), count)):
        forms = capacity.pair_forms(pair.means, pair.text, pair.covariance)
        squared, s = capacity.best_on_path(forms)
        on_grid = max(float(pair.margins_on_path(GRID).max()), 0) ** 2
        reached = max(pair.margin(pair.u + 2 * s[0] * pair.delta), 0) ** 2
        # Larger than the grid by more than its spacing allows would be as wrong as smaller.
        missed.append(max(abs(squared[0] - reached), on_grid - squared[0], squared[0] - on_grid * (1 + 1e-6)))
        round_forms = capacity.pair_forms(pair.means, pair.text, 0.3 * np.eye(len(pair.u)))
        isotropic.append(abs(capacity.stationary_shrinkage(round_forms)[0]))
        tick((index + 1) / count)
    return [
        Verdict("V2: best m² on the path against a grid", float(max(missed)), 1e-6),
        Verdict("V2: |s*| when Sigma = σ²I", float(max(isotropic)), 1e-10),
    ]
