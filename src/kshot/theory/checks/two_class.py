"""Two isotropic Gaussian classes: Corollaries 1 and 2."""

import numpy as np
from scipy.special import ndtr

from kshot.solvers.rows import squared_norms
from kshot.theory import two_class
from kshot.theory.checks.trial import WORST_Z, Effort, Verdict

DIMENSION, SIGMA2 = 6, 0.5
BATCHES = 30
SHRINKAGES = (0.0, 0.2, 0.5, 0.8, 1.0)


def two_class_risk(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Corollary 1: the exact two-class risk against simulated classification, offset included."""
    rotation = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
    u, delta, offset = np.array([[1.6, 0, 0], [0.3, 0.6, 0], [0.2, 0.5, 1.0]]) @ rotation[:3]
    means = np.stack([u / 2, -u / 2])
    text = means + offset + np.stack([delta, -delta])
    wrong = np.zeros((2, len(SHRINKAGES)))
    batch = effort.replicates(6_000_000) // BATCHES
    for _ in range(BATCHES):
        noise = np.sqrt(SIGMA2) * rng.standard_normal((batch, DIMENSION))
        for index, s in enumerate(SHRINKAGES):
            plus, minus = s * text + (1 - s) * means
            w, middle = plus - minus, (plus + minus) / 2
            along, offsets = noise @ w, (means - middle) @ w
            wrong[0, index] += np.count_nonzero(along + offsets[0] < 0)
            wrong[1, index] += np.count_nonzero(along + offsets[1] > 0)
    measured = wrong / (batch * BATCHES)
    s, pair = np.array(SHRINKAGES), two_class.pair_geometry(u, delta, offset)
    each = ndtr(-np.stack(two_class.signed_margins(s, pair)) / np.sqrt(two_class.score_variance(s, pair, SIGMA2)))
    balanced = measured.mean(axis=0) - two_class.blend_error(s, pair, SIGMA2)
    return [
        Verdict("Cor. 1: risk against simulation", float(np.abs(balanced).max()), effort.widen(1e-3)),
        Verdict("Cor. 1: risk of each class", float(np.abs(measured - each).max()), effort.widen(1e-3)),
        Verdict("Cor. 1: without offset, risk falls with s", _largest_fall(rng), 1e-12),
    ]


def _largest_fall(rng: np.random.Generator) -> float:
    """Largest fall of the risk with s: none by Cauchy–Schwarz, with exact means and no offset."""
    s = np.linspace(0, 1, 201)
    falls = []
    for _ in range(100):
        u, delta = rng.normal(size=(2, DIMENSION))
        pair = two_class.pair_geometry(u, delta, np.zeros(DIMENSION))
        falls.append(-np.diff(two_class.blend_error(s, pair, SIGMA2)).min())
    return float(max(falls))


def noise_aware(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Corollary 2: the shrinkage of least risk when the means are estimated."""
    grid = np.linspace(0, 1, 20_001)
    shortfall, misplaced = [], []
    for _ in range(effort.replicates(300)):
        u, delta = rng.normal(size=(2, 8))
        pair = two_class.pair_geometry(u, rng.uniform(0.1, 1.5) * delta, np.zeros(8))
        v = float(rng.uniform(0.01, 8))
        curve = np.asarray(two_class.deflection(grid, pair, 1.0, v))
        s = two_class.noise_aware_shrinkage(pair, v)
        shortfall.append(curve.max() - two_class.deflection(s, pair, 1.0, v))
        misplaced.append(abs(s - grid[curve.argmax()]))
    simulated = _deflection_z(rng, effort)
    limits = two_class.PairGeometry(u2=2.0, delta2=1.5, gamma=0.4)
    agreeing = two_class.PairGeometry(u2=2.0, delta2=1e-14, gamma=0.0)
    return [
        Verdict("Cor. 2: deflection lost against the best on a grid", float(max(shortfall)), 1e-8),
        Verdict("Cor. 2: s* against argmax on the grid", max(misplaced), 1e-4),
        Verdict("Cor. 2: expected margin and variance, |z|", simulated, WORST_Z),
        Verdict("Cor. 2: no noise, no shrinkage", two_class.noise_aware_shrinkage(limits, 0.0), 0.0),
        Verdict("Cor. 2: agreeing text, all shrinkage", 1 - two_class.noise_aware_shrinkage(agreeing, 0.1), 1e-9),
    ]


def _deflection_z(rng: np.random.Generator, effort: Effort) -> float:
    """Largest |z| of margin and input variance over supports whose means are estimated in 2,000 dimensions.

    Only the coordinates along u and delta are sampled, and the length of the noise in all others.
    """
    u, delta = np.array([1.2, 0.0]), np.array([0.3, 0.5])
    pair = two_class.pair_geometry(u, delta, np.zeros(2))
    n, v, sigma2, dimension = effort.replicates(20_000), 1.5, 1.0, 2000
    coordinate = np.sqrt(v / dimension)
    z = []
    for s in (0.0, 0.3, 0.8):
        plus, minus = coordinate * rng.standard_normal((2, n, 2))
        rest = rng.chisquare(dimension - 2, n) * 2 * v / dimension
        w = u + 2 * s * delta + (1 - s) * (plus - minus)
        centre = u / 2 - (1 - s) * (plus + minus) / 2
        margin = np.einsum("ij,ij->i", centre, w)
        variance = sigma2 * (squared_norms(w) + (1 - s) ** 2 * rest)
        truth = two_class.noisy_score_variance(s, pair, sigma2, v)
        expected = two_class.deflection(s, pair, sigma2, v) * np.sqrt(truth)
        for sample, value in ((margin, expected), (variance, truth)):
            z.append(abs(sample.mean() - value) / (sample.std() / np.sqrt(n)))
    return float(max(z))
