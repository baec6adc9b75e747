"""Theorem 1 and Eq. 12: what a shift common to all prototypes changes."""

import numpy as np

from kshot.solvers import rows
from kshot.solvers.rows import squared_norms
from kshot.theory import shift
from kshot.theory.checks.trial import WORST_Z, Effort, Verdict, worst_z

CLASSES, DIMENSION, INPUTS = 7, 24, 4000


def common_shift(rng: np.random.Generator, effort: Effort) -> list[Verdict]:
    """Theorem 1: a common shift changes no inner-product decision and only translates nearest-prototype ones."""
    prototypes = rng.normal(size=(CLASSES, DIMENSION))
    offset = 2 * rng.normal(size=DIMENSION)
    X = 2 * rng.normal(size=(INPUTS, DIMENSION))
    moved = prototypes + offset

    inner = shift.inner_product_scores(X, prototypes)
    inner_moved = shift.inner_product_scores(X, moved)
    drift = np.ptp(inner_moved - inner, axis=1).max()
    flips = np.count_nonzero(inner.argmax(axis=1) != inner_moved.argmax(axis=1))

    brute = -((X[:, None, :] - moved[None]) ** 2).sum(axis=2)
    nearest = shift.nearest_prototype_scores(X, moved)
    rigid = shift.nearest_prototype_scores(X - offset, prototypes)
    decisive = shift.decisive_part(offset, prototypes)
    as_projected = shift.nearest_prototype_scores(X, prototypes + decisive).argmax(axis=1)
    seen = np.count_nonzero(as_projected != brute.argmax(axis=1))
    everything = shift.decisive_part(offset, np.vstack([np.eye(DIMENSION), np.zeros(DIMENSION)]))

    directions = rng.normal(size=(effort.replicates(100_000), DIMENSION))
    directions *= 1.7 / np.sqrt(squared_norms(directions))[:, None]
    w = prototypes[0] - prototypes[1]
    predicted = float(shift.expected_squared_overlap(1.7**2, float(w @ w), DIMENSION))
    overlap_z = worst_z((directions @ w) ** 2, predicted)
    cosines = shift.squared_cosines(offset, prototypes)
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
