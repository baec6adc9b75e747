"""Proposition 4: the two laws, their independence, and the standard error of the ratio under isotropy."""

import numpy as np
from scipy.stats import kstest

from kshot.paper.checks.simulate import power_law, support_means
from kshot.paper.checks.trial import WORST_Z, Effort, Tick, Verdict, generator
from kshot.solvers import shrinkage as plug_in
from kshot.solvers.rows import squared_norms
from kshot.theory import sampling

TITLE = "Sampling law under isotropy"
# (d, K, g²) with v = 1/K: from a ratio near one half to one near 0.95.
CONFIGURATIONS = ((128, 2, 0.6), (256, 4, 0.25), (256, 4, 2.0), (256, 16, 1.0))
REPLICATES = 40_000
REMAINDER = 0.02  # the delta method's own error, O(1/d)
KOLMOGOROV = 1.95  # of sqrt(n)·distance, exceeded once in a thousand


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    n = effort.replicates(REPLICATES)
    distance, correlation, spread, delta = [], [], [], []
    for index, (d, shots, g2) in enumerate(CONFIGURATIONS):
        v = 1 / shots
        bias = np.full(d, np.sqrt(g2 / d))
        draws = list(support_means(rng, power_law(d, 0.0, 1.0), shots, n))
        d2 = np.concatenate([squared_norms(bias - means) for means, _ in draws])
        v_hat = np.concatenate([variances for _, variances in draws])
        of_d2, of_v = sampling.distance_law(g2, v, d), sampling.variance_law(v, d, shots)
        for sample, law in ((d2, of_d2), (v_hat, of_v)):
            distance.append(kstest(sample, law.cdf).statistic * np.sqrt(n))
        correlation.append(abs(np.corrcoef(d2, v_hat)[0, 1]) * np.sqrt(n))
        ratio = float(plug_in.optimal_ratio(np.array([g2]), np.array([v]))[0])
        measured = plug_in.james_stein_ratio(v_hat, d2).std()
        predicted = sampling.isotropic_standard_error(ratio, d, shots)
        spread.append(abs(measured / predicted - 1))
        by_delta = np.sqrt(of_v.var() / (g2 + v) ** 2 + v**2 * of_d2.var() / (g2 + v) ** 4)
        delta.append(abs(by_delta / predicted - 1))
        tick((index + 1) / len(CONFIGURATIONS))
    noise = WORST_Z / np.sqrt(2 * n)
    return [
        Verdict("Prop. 4: d̂² and v̂ follow their laws, √n·KS", max(distance), KOLMOGOROV),
        Verdict("Prop. 4: d̂² and v̂ are uncorrelated, √n·|r|", max(correlation), WORST_Z),
        Verdict("Prop. 4: standard error from the two laws, relative", float(max(delta)), 1e-10),
        Verdict("Prop. 4: standard error against SD, relative", float(max(spread)), REMAINDER + noise),
    ]
