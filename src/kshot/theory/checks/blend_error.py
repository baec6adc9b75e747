"""Blending as shrinkage: Propositions 1 to 3, the classical James–Stein rule and the K-correction."""

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from kshot.solvers import rows
from kshot.solvers.rows import squared_norms
from kshot.theory import blend_error
from kshot.theory.checks.trial import WORST_Z, Effort, Verdict, power_law, support_means, worst_z

# (d, K, g²) with v = 1: the boundary (6, 2), both ends of d, K and g.
DOMINATED = (
    (6, 2, 0.0),
    (8, 2, 1.0),
    (8, 3, 400.0),
    (16, 4, 0.0),
    (64, 2, 4.0),
    (64, 16, 25.0),
    (512, 4, 1.0),
    (512, 16, 100.0),
)
NOT_DOMINATED = ((5, 2, 0.0), (4, 8, 0.5), (3, 3, 0.0))


def plug_in(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Propositions 1 and 2: the estimators on 80 synthetic configurations whose truth is known."""
    trace = 0.5
    z_v, z_g2, z_risk, ratio_gap, risk_gap, identity = [], [], [], [], [], []
    for d, shots, g, decay in product((16, 64, 256, 512), (2, 3, 4, 8, 16), (0.3, 1.0), (0.0, 1.0)):
        g2, v = g**2, trace / shots
        bias = rng.normal(size=d)
        bias *= g / np.linalg.norm(bias)
        means, v_hat = support_means(rng, power_law(d, decay, trace), shots, effort.replicates(3000))
        d2, risk = squared_norms(bias - means), squared_norms(0.7 * means + 0.3 * bias)
        z_v.append(worst_z(v_hat, v))
        z_g2.append(worst_z(d2 - v_hat, g2))
        z_risk.append(worst_z(risk, float(blend_error.blend_risk(0.7, g2, v))))
        best = float(rows.optimal_ratio(np.array([g2]), np.array([v]))[0])
        found: Any = minimize_scalar(blend_error.blend_risk, args=(g2, v), bounds=(0, 1), options={"xatol": 1e-9})
        ratio_gap.append(abs(best - found.x))
        risk_gap.append(abs(blend_error.optimal_risk(g2, v) - found.fun))
        substituted = np.clip(rows.optimal_ratio(d2 - v_hat, v_hat), 0, 1)
        identity.append(np.abs(rows.james_stein_ratio(v_hat, d2) - substituted).max())
    return [
        Verdict("Prop. 1: squared error of a blend, |z|", max(z_risk), WORST_Z),
        Verdict("Prop. 1: λ* against numerical minimisation", max(ratio_gap), 1e-6),
        Verdict("Prop. 1: least risk against numerical minimisation", max(risk_gap), 1e-9),
        Verdict("Prop. 2: v̂ is unbiased, |z|", max(z_v), WORST_Z),
        Verdict("Prop. 2: d̂² − v̂ is unbiased for g², |z|", max(z_g2), WORST_Z),
        Verdict("Prop. 2: plugging in gives James–Stein", max(identity), 1e-12),
    ]


def james_stein(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Eq. 8: of all multiples of tau², (d − 2) has the least squared error (Stein's identity)."""
    worst, tau2, n = 0.0, 0.3, effort.replicates(2_000_000)
    for d in (4, 6, 12):
        theta = np.full(d, 1.5)
        X = theta + np.sqrt(tau2) * rng.standard_normal((n, d))
        d2 = squared_norms(X)
        # Risk of 1 − c·tau²/|X|² is a parabola in c; its vertex is estimated by a ratio of means.
        slope, curve = ((X - theta) * X).sum(axis=1) / d2, tau2 / d2
        vertex = slope.mean() / curve.mean()
        error = (slope - vertex * curve).std() / np.sqrt(n) / curve.mean()
        far = np.array([50.0 * d * tau2])
        used = (1 - blend_error.classical_james_stein_ratio(tau2, far, d)) * far / tau2
        worst = max(worst, float(abs(used[0] - vertex) / error))
    clipped = np.max(blend_error.classical_james_stein_ratio(tau2, np.array([1e-3]), 6))
    plane = blend_error.classical_james_stein_ratio(tau2, np.array([1e-3, 1.0]), 2)
    return [
        Verdict("Eq. 8: d − 2 minimises the risk, |z|", worst, WORST_Z),
        Verdict("Eq. 8: positive part, and no shrinkage at d = 2", float(clipped + np.ptp(plane)), 0.0),
    ]


def dominance(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Proposition 3 (V4): where the James–Stein blend provably has less squared error than the mean."""
    loss, formula = [], []
    for d, shots, g2 in DOMINATED + NOT_DOMINATED:
        bias = np.zeros(d)
        bias[0] = np.sqrt(g2)
        means, v_hat = support_means(rng, power_law(d, 0.0, float(shots)), shots, effort.replicates(20_000))
        d2, raw = squared_norms(means - bias), squared_norms(means)
        gain, change = (
            squared_norms(ratio[:, None] * (means - bias) + bias) - raw
            for ratio in (rows.james_stein_ratio(v_hat, d2), 1 - v_hat / d2)
        )
        formula.append(worst_z(change, blend_error.unclipped_risk_change(g2, 1.0, d, shots)))
        if blend_error.dominates_mean(shots, d):
            loss.append(gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain))))
    disagreements = sum(
        blend_error.dominates_mean(shots, d) != (blend_error.unclipped_risk_change(1.0, 1.0, d, shots) <= 1e-12)
        for d, shots in product(range(3, 12), range(2, 6))
    )
    return [
        Verdict("V4: loss against the mean, z", float(max(loss)), 3.0),
        Verdict("V4: certified configurations missing", float(len(DOMINATED) - len(loss)), 0.0),
        Verdict("Prop. 3: risk change of the unclipped rule, |z|", max(formula), WORST_Z),
        Verdict("Prop. 3: condition against the sign of the risk change", float(disagreements), 0.0),
    ]


def shot_correction(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Eq. 18: a ratio fitted with K − 1 shots, carried to K, is the optimum at K."""
    grid = np.linspace(0, 1, 100_001)
    gaps = []
    for _ in range(200):
        g2, trace, shots = (float(rng.uniform(0.05, 2)), float(rng.uniform(0.05, 2)), float(rng.integers(2, 17)))
        before, after = (
            float(grid[np.argmin(blend_error.blend_risk(grid, g2, trace / k))]) for k in (shots - 1, shots)
        )
        gaps.append(abs(rows.correct_for_shots(before, shots) - after))
    return [
        Verdict("K-correction: optimum at K − 1 becomes that at K", max(gaps), 5e-5),
        Verdict("K-correction: a ratio of 1 stays 1", abs(rows.correct_for_shots(1.0, 4.0) - 1), 0.0),
    ]
