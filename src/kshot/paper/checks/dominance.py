"""Proposition 3 (V4): where the James–Stein blend provably has less squared error than the mean."""

from itertools import product

import numpy as np

from kshot.paper.checks.simulate import power_law, support_means
from kshot.paper.checks.trial import WORST_Z, Effort, Tick, Verdict, generator, worst_z
from kshot.solvers import shrinkage as plug_in
from kshot.solvers.rows import squared_norms
from kshot.theory import blend_error

TITLE = "Dominance over the mean"
# (d, K, g²) with v = 1: the boundary (6, 2), both ends of d, K and g.
CERTIFIED = (
    (6, 2, 0.0),
    (8, 2, 1.0),
    (8, 3, 400.0),
    (16, 4, 0.0),
    (64, 2, 4.0),
    (64, 16, 25.0),
    (512, 4, 1.0),
    (512, 16, 100.0),
)
UNCERTIFIED = ((5, 2, 0.0), (4, 8, 0.5), (3, 3, 0.0))
REPLICATES = 20_000


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    loss, formula = [], []
    configurations = CERTIFIED + UNCERTIFIED
    for index, (d, shots, g2) in enumerate(configurations):
        bias = np.zeros(d)
        bias[0] = np.sqrt(g2)
        gain, change = [], []
        for means, v_hat in support_means(rng, power_law(d, 0.0, float(shots)), shots, effort.replicates(REPLICATES)):
            d2, raw = squared_norms(means - bias), squared_norms(means)
            for ratio, kept in ((plug_in.james_stein_ratio(v_hat, d2), gain), (1 - v_hat / d2, change)):
                kept.append(squared_norms(ratio[:, None] * (means - bias) + bias) - raw)
        gain, change = np.concatenate(gain), np.concatenate(change)
        formula.append(worst_z(change, blend_error.unclipped_risk_change(g2, 1.0, d, shots)))
        if blend_error.dominates_mean(shots, d):
            loss.append(gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain))))
        tick((index + 1) / len(configurations))
    disagreements = sum(
        blend_error.dominates_mean(shots, d) != (blend_error.unclipped_risk_change(1.0, 1.0, d, shots) <= 1e-12)
        for d, shots in product(range(3, 12), range(2, 6))
    )
    return [
        Verdict("V4: loss against the mean, z", float(max(loss)), 3.0),
        Verdict("V4: certified configurations missing", float(len(CERTIFIED) - len(loss)), 0.0),
        Verdict("Prop. 3: risk change of the unclipped rule, |z|", max(formula), WORST_Z),
        Verdict("Prop. 3: condition against the sign of the risk change", float(disagreements), 0.0),
    ]
