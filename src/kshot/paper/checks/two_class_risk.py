"""Corollary 1: the exact two-class risk against simulated classification, offset included."""

import numpy as np
from scipy.special import ndtr

from kshot.paper.checks.trial import Effort, Tick, Verdict, generator
from kshot.theory import two_class

TITLE = "Two-class risk"
DIMENSION, SIGMA2 = 6, 0.5
SAMPLES = 6_000_000
BATCHES = 30
SHRINKAGES = (0.0, 0.2, 0.5, 0.8, 1.0)


def check(effort: Effort, tick: Tick) -> list[Verdict]:
    rng = generator(TITLE)
    rotation = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
    u, delta, offset = np.array([[1.6, 0, 0], [0.3, 0.6, 0], [0.2, 0.5, 1.0]]) @ rotation[:3]
    means = np.stack([u / 2, -u / 2])
    text = means + offset + np.stack([delta, -delta])
    wrong = np.zeros((2, len(SHRINKAGES)))
    batch = effort.replicates(SAMPLES) // BATCHES
    for done in range(BATCHES):
        noise = np.sqrt(SIGMA2) * rng.standard_normal((batch, DIMENSION))
        for index, s in enumerate(SHRINKAGES):
            plus, minus = s * text + (1 - s) * means
            w, middle = plus - minus, (plus + minus) / 2
            along, offsets = noise @ w, (means - middle) @ w
            wrong[0, index] += np.count_nonzero(along + offsets[0] < 0)
            wrong[1, index] += np.count_nonzero(along + offsets[1] > 0)
        tick((done + 1) / BATCHES)
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
    """Cauchy–Schwarz: with exact means and a harmless offset the text can only hurt."""
    s = np.linspace(0, 1, 201)
    falls = []
    for _ in range(100):
        u, delta = rng.normal(size=(2, DIMENSION))
        pair = two_class.pair_geometry(u, delta, np.zeros(DIMENSION))
        falls.append(-np.diff(two_class.blend_error(s, pair, SIGMA2)).min())
    return float(max(falls))
