"""V3: path ≤ plane ≤ full, each equal to what its vectors give directly, and the constructed equality."""

import numpy as np
from scipy.stats import norm

from kshot.paper.checks.geometries import Pair, random_pair, random_pairs
from kshot.paper.checks.trial import Effort, Tick, Verdict, generator
from kshot.theory import capacity

TITLE = "Nested margins"
GEOMETRIES = 300


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    violation, wrong, summary, strict = [], [], [], 0
    count = effort.replicates(GEOMETRIES)
    for index, pair in enumerate(random_pairs(rng, count)):
        ratios = capacity.capacity(pair.means, pair.text, pair.covariance)
        path, plane, full = ratios.path[0], ratios.plane[0], ratios.full[0]
        violation.append(max(path - plane, plane - full))
        truth = _directly(pair)
        wrong.append(max(abs(plane / truth[0] - 1), abs(full / truth[1] - 1)))
        strict += full - plane > 1e-6
        gain = norm.cdf(-np.sqrt(path) / 2) - norm.cdf(-np.sqrt(full) / 2)
        summary.append(abs(capacity.headroom(ratios)[0] - gain))
        summary.append(abs(capacity.margin_ratio(ratios)[0] ** 2 * full - path))
        tick((index + 1) / count)
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
    """Plane and full: length of the whitened u, projected on the whitened plane or not at all."""
    root = np.linalg.cholesky(pair.covariance)
    white = np.linalg.solve(root, pair.u)
    basis = np.linalg.qr(root.T @ np.stack([pair.u, pair.delta], axis=1))[0]
    return float(np.sum((basis.T @ white) ** 2)), float(white @ white)


def _reachable(pair: Pair) -> Pair:
    """Text prototypes chosen so that u + 2·delta points along Sigma⁻¹u."""
    wanted = np.linalg.solve(pair.covariance, pair.u)
    return Pair(pair.means, pair.means + np.stack([wanted - pair.u, np.zeros_like(wanted)]), pair.covariance)
