"""Answers keep what metrics need, within the error that they state."""

import numpy as np
import pytest
from scipy.special import softmax

from kshot.errors import InputError
from kshot.stats.answers import LARGEST, RELATIVE_ERROR, SMALLEST, answers_of, pack_answers, unpack_answers

PROBABILITY_ERROR = 0.0017


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
    found = unpack_answers(pack_answers(answers_of(p, truth, predicted)), truth, classes)
    assert np.array_equal(found.predicted, predicted)
    own, top = p[np.arange(len(p)), truth], p.max(axis=1)
    with np.errstate(divide="ignore"):
        exact = np.clip(-np.log(own), 0, LARGEST)
    inside = exact > SMALLEST
    assert np.all(np.abs(found.true_surprise - exact)[inside] <= RELATIVE_ERROR * exact[inside] * (1 + 1e-9))
    assert np.all(found.true_surprise[~inside] <= SMALLEST)
    assert np.abs(np.exp(-found.true_surprise) - own).max() <= PROBABILITY_ERROR
    assert np.abs(found.confidence - top).max() <= PROBABILITY_ERROR
    # The spread is seven bits of a range that is at most 1/4 wide, around the square of a rounded probability.
    assert np.abs(found.squares - (p**2).sum(axis=1)).max() <= 0.25 / 254 + 2 * PROBABILITY_ERROR


def test_a_tie_counts_for_the_class_that_was_predicted():
    p = np.array([[0.5, 0.5], [0.5, 0.5]])
    found = answers_of(p, np.array([0, 0]), np.array([0, 1]))
    assert found.hits.tolist() == [True, False]
    assert unpack_answers(pack_answers(found), np.array([0, 0]), 2).hits.tolist() == [True, False]


def test_bytes_of_another_cell_are_refused():
    p, truth = drawn()
    content = pack_answers(answers_of(p, truth, p.argmax(axis=1)))
    with pytest.raises(InputError, match="no answers about 3999 pictures"):
        unpack_answers(content, truth[:-1], 20)
