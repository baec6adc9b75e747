"""The ceiling of blending: Theorem 2 (V1, V2, V3) on random class pairs with a covariance of any shape."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from kshot.theory import capacity
from kshot.theory.checks.trial import Effort, Verdict, power_law


@dataclass(frozen=True, slots=True)
class Pair:
    """Class means and text prototypes (2, d), and margins computed directly from their vectors."""

    means: np.ndarray
    text: np.ndarray
    covariance: np.ndarray

    @property
    def u(self) -> np.ndarray:
        return self.means[0] - self.means[1]

    @property
    def delta(self) -> np.ndarray:
        gap = self.text - self.means
        return (gap[0] - gap[1]) / 2

    def margin(self, w: np.ndarray) -> float:
        return float(self.u @ w / np.sqrt(w @ self.covariance @ w))

    def margins_on_path(self, s: np.ndarray) -> np.ndarray:
        """Margins along u + 2s·delta for many s; the covariance is applied to u and delta once."""
        u, step = self.u, 2 * self.delta
        spread = u @ self.covariance @ u + s * (2 * (u @ self.covariance @ step) + s * (step @ self.covariance @ step))
        return (u @ u + s * (u @ step)) / np.sqrt(spread)


def random_pair(rng: np.random.Generator, d: int, decay: float) -> Pair:
    means = rng.normal(size=(2, d)) / np.sqrt(d)
    text = means + rng.normal(size=d) + rng.uniform(0.2, 2) * rng.normal(size=(2, d)) / np.sqrt(d)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return Pair(means, text, (rotation * power_law(d, decay, 1.0)) @ rotation.T)


def random_pairs(rng: np.random.Generator, count: int) -> list[Pair]:
    return [random_pair(rng, int(rng.integers(6, 60)), float(rng.uniform(0, 2))) for _ in range(count)]


def error_formula(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """V1: Φ(−m/2) is the error of a direction at its best threshold; the blend's own threshold is no better."""
    d, batches, points = 40, 20, (0.0, 0.25, 0.5, 0.75, 1.0)
    pair = random_pair(rng, d, decay=1.0)
    # So much spread that the means' own direction errs at Φ(−1), about 16 %.
    pair = replace(pair, covariance=pair.covariance * (pair.margin(pair.u) / 2) ** 2)
    root = np.linalg.cholesky(pair.covariance)
    best, own = np.zeros(len(points)), np.zeros(len(points))
    batch = effort.replicates(400_000) // (2 * batches)
    for _ in range(batches):
        plus, minus = pair.means[:, None, :] + rng.standard_normal((2, batch, d)) @ root.T
        for index, s in enumerate(points):
            prototypes = s * pair.text + (1 - s) * pair.means
            w = prototypes[0] - prototypes[1]
            for wrong, middle in ((best, pair.means.mean(axis=0)), (own, prototypes.mean(axis=0))):
                wrong[index] += np.count_nonzero(plus @ w < w @ middle)
                wrong[index] += np.count_nonzero(minus @ w > w @ middle)
    n = 2 * batch * batches
    forms = capacity.pair_forms(pair.means, pair.text, pair.covariance)
    margins = np.array([capacity.path_margin(np.array([s]), forms)[0] for s in points])
    gap = np.abs(best / n - capacity.separation_error(margins**2)).max()
    return [
        Verdict("V1: error against Φ(−m/2)", float(gap), effort.widen(3e-3)),
        Verdict("V1: prototype-midpoint threshold gains", float(((best - own) / n).max()), 0.0),
    ]


def best_on_path(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """V2: the closed form s* against a fine grid, and no shrinkage under isotropy."""
    grid = np.linspace(0, 1, 20_000)
    missed, isotropic = [], []
    for pair in random_pairs(rng, effort.replicates(300)):
        forms = capacity.pair_forms(pair.means, pair.text, pair.covariance)
        squared, s = capacity.best_on_path(forms)
        on_grid = max(float(pair.margins_on_path(grid).max()), 0) ** 2
        reached = max(pair.margin(pair.u + 2 * s[0] * pair.delta), 0) ** 2
        # Larger than the grid by more than its spacing allows would be as wrong as smaller.
        missed.append(max(abs(squared[0] - reached), on_grid - squared[0], squared[0] - on_grid * (1 + 1e-6)))
        round_forms = capacity.pair_forms(pair.means, pair.text, 0.3 * np.eye(len(pair.u)))
        isotropic.append(abs(capacity.stationary_shrinkage(round_forms)[0]))
    return [
        Verdict("V2: best m² on the path against a grid", float(max(missed)), 1e-6),
        Verdict("V2: |s*| when Sigma = σ²I", float(max(isotropic)), 1e-10),
    ]


def nesting(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """V3: path ≤ plane ≤ full, each equal to what its vectors give directly, and the constructed equality."""
    violation, wrong, summary, strict = [], [], [], 0
    count = effort.replicates(300)
    for pair in random_pairs(rng, count):
        ratios = capacity.capacity(pair.means, pair.text, pair.covariance)
        path, plane, full = ratios.path[0], ratios.plane[0], ratios.full[0]
        violation.append(max(path - plane, plane - full))
        truth = _directly(pair)
        wrong.append(max(abs(plane / truth[0] - 1), abs(full / truth[1] - 1)))
        strict += full - plane > 1e-6
        gain = norm.cdf(-np.sqrt(path) / 2) - norm.cdf(-np.sqrt(full) / 2)
        summary.append(abs(capacity.headroom(ratios)[0] - gain))
        summary.append(abs(capacity.margin_ratio(ratios)[0] ** 2 * full - path))
    equal = _reachable(random_pair(rng, 20, 1.0))
    ratios = capacity.capacity(equal.means, equal.text, equal.covariance)
    return [
        Verdict("V3: violation of path ≤ plane ≤ full", float(max(violation)), 1e-8),
        Verdict("V3: plane and full against their vectors, relative", float(max(wrong)), 1e-8),
        Verdict("V3: headroom and margin ratio against their definitions", float(max(summary)), 1e-10),
        Verdict("V3: share of pairs where the plane reaches full", 1 - strict / count, 0.01),
        Verdict("V3: equality where Sigma⁻¹u is in the plane", abs(ratios.plane[0] / ratios.full[0] - 1), 1e-8),
    ]


def _directly(pair: Pair) -> tuple[float, float]:
    """Squared margins of plane and full: length of the whitened u, projected on the whitened plane or whole."""
    root = np.linalg.cholesky(pair.covariance)
    white = np.linalg.solve(root, pair.u)
    basis = np.linalg.qr(root.T @ np.stack([pair.u, pair.delta], axis=1))[0]
    return float(np.sum((basis.T @ white) ** 2)), float(white @ white)


def _reachable(pair: Pair) -> Pair:
    """Text prototypes chosen so that u + 2·delta points along Sigma⁻¹u."""
    wanted = np.linalg.solve(pair.covariance, pair.u)
    return replace(pair, text=pair.means + np.stack([wanted - pair.u, np.zeros_like(wanted)]))
