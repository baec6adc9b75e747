"""Held-out scores of fold-GDA against refitting without the row, and weights that win against trying them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kshot.solvers.folds import balanced_folds, held_out_folds, principal_axes, ranks_by_text
from kshot.solvers.ratio_sweep import hits_by_weight, winning_range, wins_by_weight
from problems import problem

drawn_problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "counts": st.lists(st.integers(1, 5), min_size=2, max_size=6).filter(lambda c: max(c) > 1),
        "dim": st.integers(4, 30),
        "noise": st.floats(0.3, 1.0),
    }
)


def drawn(arguments):
    return problem(classes=len(arguments["counts"]), **arguments)


def between_classes(scores):
    """What decides: a constant common to all classes of a row is free."""
    return scores - scores.mean(axis=-1, keepdims=True)


def refitted(data, row, gamma, kappa):
    """Scores of one row by the definition: drop rows, compute means and covariance again, invert."""
    X, y, T = data.X, data.y, data.text
    C, d = T.shape
    members = [np.flatnonzero(y == c) for c in range(C)]
    ranked = [rows[np.argsort(-(X[rows] @ T[c]))] for c, rows in enumerate(members)]
    fold = int(np.flatnonzero(ranked[y[row]] == row)[0])
    kept = [np.delete(rows, fold % len(rows)) if len(rows) > 1 else rows for rows in ranked]
    assert row not in kept[y[row]]

    def scatter(groups):
        return sum((X[g] - X[g].mean(0)).T @ (X[g] - X[g].mean(0)) for g in groups) / (len(X) - C)

    ridge = gamma * np.trace(scatter(members)) / d
    without = [np.setdiff1d(rows, [row]) for rows in members]
    P = np.linalg.inv(scatter(without) + ridge * np.eye(d))

    def shrunk(groups):
        means = np.stack([X[g].mean(0) for g in groups])
        n = np.array([len(g) for g in groups])[:, None]
        offset, text = means.mean(0), T - T.mean(0)
        slope = np.sum((means - offset) * text) / np.sum(text**2)
        return (n * means + kappa * (offset + slope * text)) / (n + kappa)

    means = shrunk(kept)
    return means @ P @ X[row] - np.einsum("cd,de,ce->c", means, P, means) / 2


@settings(max_examples=40)
@given(arguments=drawn_problems, gamma=st.sampled_from([0.1, 1.0, 30.0]), kappa=st.sampled_from([0.0, 0.5, 8.0]))
def test_held_out_scores_equal_a_refit_without_the_row(arguments, gamma, kappa):
    data = drawn(arguments)
    axes = principal_axes(data.X, data.y, data.text)
    folds = balanced_folds(ranks_by_text(data.X, data.y, data.text), data.y)
    seen = []
    for fold in held_out_folds(axes, folds, gamma):
        found = between_classes(fold.scores(kappa))
        for row, scores in zip(fold.rows, found, strict=True):
            expected = between_classes(refitted(data, row, gamma, kappa))
            assert np.allclose(scores, expected, rtol=0, atol=1e-10 * max(1, np.abs(expected).max()))
        seen += fold.rows.tolist()
    assert sorted(seen) == np.flatnonzero(np.bincount(data.y)[data.y] > 1).tolist()


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 20), classes=st.integers(2, 8))
def test_winning_ranges_answer_for_every_weight(seed, n, classes):
    rng = np.random.default_rng(seed)
    base, extra = rng.normal(size=(2, n, classes))
    extra[rng.random(extra.shape) < 0.2] = 0.0
    y = rng.integers(0, classes, n)
    weights = np.logspace(-3, 3, 61)
    found = wins_by_weight(*winning_range(base, extra, y), weights)
    assert np.array_equal(found, hits_by_weight(base, extra, weights, y))


def test_folds_do_not_depend_on_the_order_of_the_shots():
    data = problem(counts=[2, 5, 3, 1, 7, 4])
    order = np.random.default_rng(0).permutation(len(data.y))
    number = ranks_by_text(data.X, data.y, data.text)
    assert np.array_equal(ranks_by_text(data.X[order], data.y[order], data.text), number[order])
    for c in range(6):
        assert sorted(number[data.y == c]) == list(range(np.count_nonzero(data.y == c)))
