"""Tip-Adapter's search leaves classes out that cannot win; what it counts is what a search over all classes counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshot.solvers.cache import contenders, lay_out, search_grid, search_hits
from kshot.solvers.rows import unit_rows


def problem(seed: int, classes: int, shots: int, spread: float, dtype: str):
    """Uneven shots, and the last class a copy of the first, so that scores tie."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, 24))
    centres[-1] = centres[0]
    y = np.sort(np.concatenate([np.arange(classes), rng.integers(0, classes, classes * (shots - 1))]))

    def around(labels):
        return unit_rows((centres[labels] + spread * rng.standard_normal((len(labels), 24))).astype(dtype), "x")

    text = unit_rows((centres + 0.5 * spread * rng.standard_normal(centres.shape)).astype(dtype), "text")
    text[-1] = text[0]
    labels = rng.integers(0, classes, 60)
    return around(y), y, text, around(labels), labels


def brute_force(X, y, scaled_text, keys, key_labels, betas, alphas, own=None):
    """Every class at every point, in float64."""
    X, scaled_text, keys = (array.astype(np.float64) for array in (X, scaled_text, keys))
    one_hot = np.eye(len(scaled_text))[key_labels]
    hits = np.zeros((len(betas), len(alphas)), int)
    for i, beta in enumerate(betas):
        affinity = np.exp(beta * (X @ keys.T - 1))
        if own is not None:
            affinity[np.arange(len(X)), own] = 0
        for j, alpha in enumerate(alphas):
            hits[i, j] = np.sum((X @ scaled_text.T + alpha * affinity @ one_hot).argmax(axis=1) == y)
    return hits


@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(3, 12),
    shots=st.integers(1, 6),
    spread=st.sampled_from([0.3, 1.0, 3.0]),
    dtype=st.sampled_from(["float32", "float64"]),
    left_out=st.booleans(),
)
def test_a_search_counts_what_all_classes_at_all_points_count(seed, classes, shots, spread, dtype, left_out):
    keys, key_labels, text, X, y = problem(seed, classes, shots, spread, dtype)
    table, filled, shot = lay_out(keys, key_labels, classes)
    grids = search_grid(12.0, 7), search_grid(10.0, 5)
    scaled = 100 * text
    if left_out:
        found = search_hits(keys, key_labels, scaled, table, filled, *grids, shot)
        rows = np.arange(len(keys))
        expected = brute_force(keys, key_labels, scaled, keys, key_labels, *grids, rows)
        total = len(keys)
    else:
        found = search_hits(X, y, scaled, table, filled, *grids)
        expected, total = brute_force(X, y, scaled, keys, key_labels, *grids), len(X)
    # The copied classes tie up to rounding: each row of theirs may go either way.
    ties = np.count_nonzero(np.isin(key_labels if left_out else y, (0, classes - 1)))
    assert found.shape == expected.shape
    assert found.max() <= total
    assert np.abs(found - expected).max() <= ties


@pytest.mark.parametrize("shots", [1, 4, 16])
def test_whoever_wins_somewhere_is_a_contender(shots):
    keys, key_labels, text, X, _ = problem(3, 30, shots, 1.0, "float32")
    table, filled, _ = lay_out(keys, key_labels, 30)
    distance = np.where(filled, np.einsum("nd,kcd->nkc", X, table) - 1, -np.inf).astype(np.float32)
    base = 100 * X @ text.T
    can_win = contenders(base, distance, 0.1)
    for beta in search_grid(30.0, 40):
        cache = np.exp(beta * distance).sum(axis=1)
        for alpha in search_grid(30.0, 20):
            winners = (base + alpha * cache).argmax(axis=1)
            assert can_win[np.arange(len(X)), winners].all()
    assert can_win.mean() < 0.9
