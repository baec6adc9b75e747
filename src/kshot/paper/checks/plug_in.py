"""Propositions 1 and 2: the estimators on 80 synthetic configurations whose truth is known."""

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from kshot.paper.checks.simulate import power_law, support_means
from kshot.paper.checks.trial import WORST_Z, Effort, Tick, Verdict, generator, worst_z
from kshot.solvers import shrinkage as plug_in
from kshot.solvers.rows import squared_norms
from kshot.theory import blend_error

TITLE = "MSE-optimal ratio and its plug-in"
CONFIGURATIONS = list(product((16, 64, 256, 512), (2, 3, 4, 8, 16), (0.3, 1.0), (0.0, 1.0)))
REPLICATES = 3000
TRACE = 0.5


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    z_v, z_g2, z_risk, ratio_gap, risk_gap, identity = (np.zeros(len(CONFIGURATIONS)) for _ in range(6))
    for index, (d, shots, g, decay) in enumerate(CONFIGURATIONS):
        spectrum, v = power_law(d, decay, TRACE), TRACE / shots
        bias = rng.normal(size=d)
        bias *= g / np.linalg.norm(bias)
        v_hat, d2, risk = [], [], []
        for means, variances in support_means(rng, spectrum, shots, effort.replicates(REPLICATES)):
            v_hat.append(variances)
            d2.append(squared_norms(bias - means))
            risk.append(squared_norms(0.7 * means + 0.3 * bias))
        v_hat, d2 = np.concatenate(v_hat), np.concatenate(d2)
        z_v[index] = worst_z(v_hat, v)
        z_g2[index] = worst_z(d2 - v_hat, g**2)
        z_risk[index] = worst_z(np.concatenate(risk), float(blend_error.blend_risk(0.7, g**2, v)))
        best = float(plug_in.optimal_ratio(np.array([g**2]), np.array([v]))[0])
        found: Any = minimize_scalar(blend_error.blend_risk, args=(g**2, v), bounds=(0, 1), options={"xatol": 1e-9})
        ratio_gap[index] = abs(best - found.x)
        risk_gap[index] = abs(blend_error.optimal_risk(g**2, v) - found.fun)
        substituted = np.clip(plug_in.optimal_ratio(d2 - v_hat, v_hat), 0, 1)
        identity[index] = np.abs(plug_in.james_stein_ratio(v_hat, d2) - substituted).max()
        tick((index + 1) / len(CONFIGURATIONS))
    return [
        Verdict("Prop. 1: squared error of a blend, |z|", z_risk.max(), WORST_Z),
        Verdict("Prop. 1: λ* against numerical minimisation", ratio_gap.max(), 1e-6),
        Verdict("Prop. 1: least risk against numerical minimisation", risk_gap.max(), 1e-9),
        Verdict("Prop. 2: v̂ is unbiased, |z|", z_v.max(), WORST_Z),
        Verdict("Prop. 2: d̂² − v̂ is unbiased for g², |z|", z_g2.max(), WORST_Z),
        Verdict("Prop. 2: plugging in gives James–Stein", identity.max(), 1e-12),
    ]
