"""The sweep against prototypes blended one by one, in plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kshot.solvers import ratio_sweep
from kshot.solvers.ratio_sweep import GRID, hits_by_weight, leave_one_out_predictions, sweep_predictions
from kshot.solvers.rows import class_means
from problems import problem

WEIGHTS = 2.0 ** np.arange(-3, 4)


def blended_scores(X, means, text, lam):
    prototypes = lam * means + (1 - lam) * text
    return X @ (prototypes / np.linalg.norm(prototypes, axis=1, keepdims=True)).T


def assert_argmax(predicted, scores):
    """Equal up to exact ties: the chosen class scores as high as the best to rounding."""
    chosen = scores[np.arange(len(scores)), predicted]
    assert np.all(chosen >= scores.max(axis=1) - 1e-12)


@pytest.mark.parametrize("block_bytes", [1, 500, 10**6])
def test_equals_scoring_every_blend(monkeypatch, block_bytes):
    monkeypatch.setattr(ratio_sweep, "BLOCK_BYTES", block_bytes)
    data = problem(classes=7, shots=3, n_test=101)
    means = class_means(data.X, data.y, 7)
    predicted = sweep_predictions(data.test.X, means, data.text)
    assert predicted.shape == (101, 101)
    for row, lam in zip(predicted, GRID, strict=True):
        assert_argmax(row, blended_scores(data.test.X, means, data.text, lam))


@given(seed=st.integers(0, 10**6), counts=st.lists(st.integers(2, 5), min_size=2, max_size=6))
@settings(max_examples=40)
def test_leave_one_out_equals_recomputing_the_own_mean(seed, counts):
    data = problem(seed=seed, classes=len(counts), counts=counts, noise=1.0)
    C = len(counts)
    means = class_means(data.X, data.y, C)
    predicted = leave_one_out_predictions(data.X, data.y, means, data.text)[::10]
    for i, label in enumerate(data.y):
        without = means.copy()
        others = (data.y == label) & (np.arange(len(data.y)) != i)
        without[label] = data.X[others].mean(axis=0)
        for row, lam in zip(predicted, GRID[::10], strict=True):
            assert_argmax(row[i : i + 1], blended_scores(data.X[i : i + 1], without, data.text, lam))


def test_a_single_shot_keeps_its_mean():
    data = problem(counts=[1, 3, 3, 3, 3, 3])
    means = class_means(data.X, data.y, 6)
    predicted = leave_one_out_predictions(data.X, data.y, means, data.text)
    assert predicted[-1, 0] == 0  # at ratio 1 the lone shot is its own prototype


def test_first_of_equal_classes_wins():
    text = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    predicted = sweep_predictions(np.array([[1.0, 0.0]]), text, text)
    assert not predicted.any()


def test_opposite_prototypes_that_cancel_score_zero():
    text = np.array([[1.0, 0.0], [0.0, 1.0]])
    means = np.array([[-1.0, 0.0], [0.0, 1.0]])
    predicted = sweep_predictions(np.array([[0.1, 0.9]]), means, text, np.array([0.5]))
    assert predicted[0, 0] == 1


@given(st.data(), st.integers(1, 30), st.integers(2, 6))
def test_hits_are_those_of_the_first_best_class(data, n, classes):
    """At every weight, on whole numbers so that ties are real."""
    scores = arrays(np.float64, (n, classes), elements=st.integers(-3, 3).map(float))
    base, extra = data.draw(scores), data.draw(scores)
    y = data.draw(arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    one_by_one = [
        sum(max(range(classes), key=lambda c: base[i, c] + w * extra[i, c]) == y[i] for i in range(n)) for w in WEIGHTS
    ]
    assert hits_by_weight(base, extra, WEIGHTS, y).tolist() == one_by_one
