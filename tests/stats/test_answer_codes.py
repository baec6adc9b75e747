"""Answers keep what metrics need, within the error that they state."""

import numpy as np
import pytest
from scipy.special import softmax

from kshot.stats.answers import LARGEST, RELATIVE_ERROR, answers_of
from stored_answers import stored

PROBABILITY_ERROR = 0.0015


def drawn(classes=20, n=4000, sharpness=2.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    scores = sharpness * rng.normal(size=(n, classes))
    scores[np.arange(n), truth] += 2 * sharpness
    return softmax(scores, axis=1), truth


@pytest.mark.parametrize("sharpness", [0.01, 1.0, 6.0, 300.0])
@pytest.mark.parametrize("classes", [2, 20, 300])
def test_what_comes_back_is_within_the_stated_error(classes, sharpness):
    p, truth = drawn(classes, sharpness=sharpness)
    predicted = p.argmax(axis=1)
    found = stored(answers_of(p, truth, predicted))
    assert np.array_equal(found.truth, truth)
    assert np.array_equal(found.predicted, predicted)
    own, top = p[np.arange(len(p)), truth], p.max(axis=1)
    with np.errstate(divide="ignore"):
        exact = np.clip(-np.log(own), 0, LARGEST)
    np.testing.assert_allclose(found.true_surprise, exact, rtol=RELATIVE_ERROR, atol=1e-7)
    np.testing.assert_allclose(np.exp(-found.true_surprise), own, rtol=0, atol=PROBABILITY_ERROR)
    np.testing.assert_allclose(found.confidence, top, rtol=0, atol=PROBABILITY_ERROR)
    np.testing.assert_allclose(found.squares, (p**2).sum(axis=1), rtol=RELATIVE_ERROR)


def test_a_tie_counts_for_the_class_that_was_predicted():
    p = np.array([[0.5, 0.5], [0.5, 0.5]])
    found = answers_of(p, np.array([0, 0]), np.array([0, 1]))
    assert found.hits.tolist() == [True, False]
    assert stored(found).hits.tolist() == [True, False]
