"""Stacked weights against a brute-force search of the objective written out."""

import numpy as np
import pytest

from kshot.solvers.stacking import ScalePrior, stack


def drawn(n, seed=0, C=5):
    """Two heads of different worth whose errors are their own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, C, n)
    truth = np.eye(C)[y]
    scores = np.stack([2 * truth + rng.normal(size=(n, C)), truth + rng.normal(size=(n, C))])
    return scores, y


def objective(logs, scores, y, spread):
    logits = np.einsum("b,bnc->nc", np.exp(logs), scores)
    own = logits[np.arange(len(y)), y]
    prior = ((logs[0] - logs[1]) / spread) ** 2 / 2
    return np.sum(np.log(np.exp(logits).sum(axis=1)) - own) + prior


@pytest.mark.parametrize(("n", "spread"), [(30, 0.5), (300, 0.5), (30, 2.0)])
def test_weights_minimise_the_penalised_likelihood(n, spread):
    scores, y = drawn(n)
    found = stack(scores, y, spread)
    grid = np.linspace(-2.5, 2.5, 101)
    least = min(objective(np.array([a, b]), scores, y, spread) for a in grid for b in grid)
    assert objective(np.log(found.weights), scores, y, spread) <= least + 1e-3


def test_many_shots_find_the_weights_that_made_the_scores():
    """With unit noise around m·(one-hot) the log-likelihood ratio of a class is m·score."""
    found = stack(*drawn(20_000), 0.5)
    assert np.allclose(found.weights, [2, 1], rtol=0.05)


def test_information_is_what_the_scores_tell():
    scores, y = drawn(500)
    found = stack(scores[:1], y, 0.5)
    cross_entropy = objective(np.log([found.weights[0], found.weights[0]]), np.stack([scores[0], 0 * scores[0]]), y, 1)
    assert np.isclose(found.information, np.log(5) - cross_entropy / len(y))
    assert abs(stack(0 * scores[:1], y, 0.5).information) < 1e-9


def test_the_scale_leans_on_what_was_known_as_long_as_few_shots_judge():
    known = ScalePrior(np.log(5.0), 0.2)
    few, many = (stack(drawn(n)[0][:1], drawn(n)[1], 0.5, known).weights[0] for n in (4, 20_000))
    free = stack(drawn(20_000)[0][:1], drawn(20_000)[1], 0.5).weights[0]
    assert abs(np.log(few / 5)) < 0.5
    assert np.isclose(many, free, rtol=0.05)
