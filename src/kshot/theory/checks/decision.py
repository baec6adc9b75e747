"""Theorem 1 and Eq. 12, what a shift common to all prototypes changes; Corollaries 1 and 2, two isotropic classes."""

import numpy as np
from scipy.special import ndtr

from kshot.solvers import rows
from kshot.solvers.rows import squared_norms
from kshot.theory import decision
from kshot.theory.checks.trial import WORST_Z, Effort, Verdict, worst_z

CLASSES, DIMENSION, INPUTS = 7, 24, 4000
PAIR_DIMENSION, SIGMA2 = 6, 0.5
BATCHES = 30
SHRINKAGES = (0.0, 0.2, 0.5, 0.8, 1.0)


def common_shift(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Theorem 1: a common shift changes no inner-product decision and only translates nearest-prototype ones."""
    prototypes = rng.normal(size=(CLASSES, DIMENSION))
    offset = 2 * rng.normal(size=DIMENSION)
    X = 2 * rng.normal(size=(INPUTS, DIMENSION))
    moved = prototypes + offset

    inner = decision.inner_product_scores(X, prototypes)
    inner_moved = decision.inner_product_scores(X, moved)
    drift = np.ptp(inner_moved - inner, axis=1).max()
    flips = np.count_nonzero(inner.argmax(axis=1) != inner_moved.argmax(axis=1))

    brute = -((X[:, None, :] - moved[None]) ** 2).sum(axis=2)
    nearest = decision.nearest_prototype_scores(X, moved)
    rigid = decision.nearest_prototype_scores(X - offset, prototypes)
    decisive = decision.decisive_part(offset, prototypes)
    as_projected = decision.nearest_prototype_scores(X, prototypes + decisive).argmax(axis=1)
    seen = np.count_nonzero(as_projected != brute.argmax(axis=1))
    everything = decision.decisive_part(offset, np.vstack([np.eye(DIMENSION), np.zeros(DIMENSION)]))

    directions = rng.normal(size=(effort.replicates(100_000), DIMENSION))
    directions *= 1.7 / np.sqrt(squared_norms(directions))[:, None]
    w = prototypes[0] - prototypes[1]
    predicted = float(decision.expected_squared_overlap(1.7**2, float(w @ w), DIMENSION))
    overlap_z = worst_z((directions @ w) ** 2, predicted)
    cosines = decision.squared_cosines(offset, prototypes)
    i, j = np.triu_indices(CLASSES, k=1)
    differences = prototypes[i] - prototypes[j]
    by_hand = (differences @ offset) ** 2 / squared_norms(differences) / (offset @ offset)
    return [
        *_decomposition(rng),
        Verdict("Thm. 1(i): inner-product score differences move", float(drift), 1e-10),
        Verdict("Thm. 1(i): predictions that change", float(flips), 0.0),
        Verdict("Thm. 1(ii): scores are negative squared distances", float(np.abs(nearest - brute).max()), 1e-9),
        Verdict("Thm. 1(ii): regions translate rigidly", float(np.abs(nearest - rigid).max()), 1e-9),
        Verdict("Thm. 1(ii): predictions that see more than Π·Delta", float(seen), 0.0),
        Verdict("Thm. 1(ii): Π is a projection", _projection_gap(offset, decisive, prototypes), 1e-10),
        Verdict("Thm. 1(ii): nothing is lost when W is everything", float(np.abs(everything - offset).max()), 1e-10),
        Verdict("Thm. 1(iii): mean squared overlap, |z|", overlap_z, WORST_Z),
        Verdict("Thm. 1(iii): squared cosines, pair by pair", float(np.abs(cosines - by_hand).max()), 1e-12),
    ]


def _decomposition(rng: np.random.Generator) -> list[Verdict]:
    """Text built as mean + Delta + delta_c with residuals that sum to zero."""
    means, delta = rng.normal(size=(2, CLASSES, DIMENSION))
    delta -= delta.mean(axis=0)
    offset = rng.normal(size=DIMENSION)
    text = means + offset + delta
    found = rows.common_offset(means, text)
    share = (offset @ offset) / (offset @ offset + squared_norms(delta).mean())
    gap = abs(rows.class_independent_share(means, text) - share)
    return [
        Verdict("Eq. 12: the common offset is found", float(np.abs(found - offset).max()), 1e-12),
        Verdict("Eq. 12: class-independent share", float(gap), 1e-12),
    ]


def _projection_gap(offset: np.ndarray, decisive: np.ndarray, prototypes: np.ndarray) -> float:
    """Largest overlap of the dropped part with a class difference, or distance of the kept part from their span."""
    left_over = np.abs((prototypes - prototypes[0]) @ (offset - decisive)).max()
    weights = np.linalg.lstsq((prototypes[1:] - prototypes[0]).T, decisive, rcond=None)[0]
    return float(max(left_over, np.abs(weights @ (prototypes[1:] - prototypes[0]) - decisive).max()))


def two_class_risk(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Corollary 1: the exact two-class risk against simulated classification, offset included."""
    rotation = np.linalg.qr(rng.normal(size=(PAIR_DIMENSION, PAIR_DIMENSION)))[0]
    u, delta, offset = np.array([[1.6, 0, 0], [0.3, 0.6, 0], [0.2, 0.5, 1.0]]) @ rotation[:3]
    means = np.stack([u / 2, -u / 2])
    text = means + offset + np.stack([delta, -delta])
    wrong = np.zeros((2, len(SHRINKAGES)))
    batch = effort.replicates(6_000_000) // BATCHES
    for _ in range(BATCHES):
        noise = np.sqrt(SIGMA2) * rng.standard_normal((batch, PAIR_DIMENSION))
        for index, s in enumerate(SHRINKAGES):
            plus, minus = s * text + (1 - s) * means
            w, middle = plus - minus, (plus + minus) / 2
            along, offsets = noise @ w, (means - middle) @ w
            wrong[0, index] += np.count_nonzero(along + offsets[0] < 0)
            wrong[1, index] += np.count_nonzero(along + offsets[1] > 0)
    measured = wrong / (batch * BATCHES)
    s, pair = np.array(SHRINKAGES), decision.pair_geometry(u, delta, offset)
    each = ndtr(-np.stack(decision.signed_margins(s, pair)) / np.sqrt(decision.score_variance(s, pair, SIGMA2)))
    balanced = measured.mean(axis=0) - decision.blend_error(s, pair, SIGMA2)
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
        u, delta = rng.normal(size=(2, PAIR_DIMENSION))
        pair = decision.pair_geometry(u, delta, np.zeros(PAIR_DIMENSION))
        falls.append(-np.diff(decision.blend_error(s, pair, SIGMA2)).min())
    return float(max(falls))


def noise_aware(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Corollary 2: the shrinkage of least risk when the means are estimated."""
    grid = np.linspace(0, 1, 20_001)
    shortfall, misplaced = [], []
    for _ in range(effort.replicates(300)):
        u, delta = rng.normal(size=(2, 8))
        pair = decision.pair_geometry(u, rng.uniform(0.1, 1.5) * delta, np.zeros(8))
        v = float(rng.uniform(0.01, 8))
        curve = np.asarray(decision.deflection(grid, pair, 1.0, v))
        s = decision.noise_aware_shrinkage(pair, v)
        shortfall.append(curve.max() - decision.deflection(s, pair, 1.0, v))
        misplaced.append(abs(s - grid[curve.argmax()]))
    simulated = _deflection_z(rng, effort)
    limits = decision.PairGeometry(u2=2.0, delta2=1.5, gamma=0.4)
    agreeing = decision.PairGeometry(u2=2.0, delta2=1e-14, gamma=0.0)
    return [
        Verdict("Cor. 2: deflection lost against the best on a grid", float(max(shortfall)), 1e-8),
        Verdict("Cor. 2: s* against argmax on the grid", max(misplaced), 1e-4),
        Verdict("Cor. 2: expected margin and variance, |z|", simulated, WORST_Z),
        Verdict("Cor. 2: no noise, no shrinkage", decision.noise_aware_shrinkage(limits, 0.0), 0.0),
        Verdict("Cor. 2: agreeing text, all shrinkage", 1 - decision.noise_aware_shrinkage(agreeing, 0.1), 1e-9),
    ]


def _deflection_z(rng: np.random.Generator, effort: Effort) -> float:
    """Largest |z| of margin and input variance over supports whose means are estimated in 2,000 dimensions.

    Only the coordinates along u and delta are sampled, and the length of the noise in all others.
    """
    u, delta = np.array([1.2, 0.0]), np.array([0.3, 0.5])
    pair = decision.pair_geometry(u, delta, np.zeros(2))
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
        truth = decision.noisy_score_variance(s, pair, sigma2, v)
        expected = decision.deflection(s, pair, sigma2, v) * np.sqrt(truth)
        for sample, value in ((margin, expected), (variance, truth)):
            z.append(abs(sample.mean() - value) / (sample.std() / np.sqrt(n)))
    return float(max(z))
