"""The quasi-Newton probe against the objective written out and against CLAP's own trainer run to its end."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from kshot.solvers.cosine_optimum import fit_cosine_probe
from kshot.solvers.cosine_probe import anchor_confidence, train_cosine_probe
from problems import problem

SCALE, ANCHOR = 20.0, 3.0


def objective(weights, data, anchors, penalties):
    """Mean cross-entropy of scaled cosines plus the mean over classes of penalty·|w − a|²."""
    W = weights.reshape(anchors.shape)
    logits = SCALE * data.X @ (W / np.linalg.norm(W, axis=1, keepdims=True)).T
    own = logits[np.arange(len(data.y)), data.y]
    cross_entropy = np.mean(np.log(np.exp(logits).sum(axis=1)) - own)
    return cross_entropy + np.mean(penalties * np.sum((W - anchors) ** 2, axis=1))


@pytest.fixture(params=[24, 60], ids=["whole space", "span"])
def setting(request):
    data = problem(dim=request.param, noise=0.9, counts=[1, 5, 3, 2, 7, 4])
    penalties = anchor_confidence(data.X, data.y, data.text, SCALE)
    return data, ANCHOR * data.text, penalties


def test_the_derivative_vanishes_at_the_end(setting):
    data, anchors, penalties = setting
    found = fit_cosine_probe(data.X, data.y, anchors, penalties, scale=SCALE, iterations=500)
    start, end = (
        np.abs(approx_fprime(weights.ravel(), objective, 1e-7, data, anchors, penalties)).max()
        for weights in (anchors, found)
    )
    assert end < 1e-4 * start


def test_twenty_iterations_are_nearly_there(setting):
    data, anchors, penalties = setting
    values = [
        objective(
            fit_cosine_probe(data.X, data.y, anchors, penalties, scale=SCALE, iterations=n), data, anchors, penalties
        )
        for n in (20, 500)
    ]
    begin = objective(anchors, data, anchors, penalties)
    assert values[0] - values[1] < 0.01 * (begin - values[1])


def test_momentum_descent_ends_in_the_same_weights(setting):
    """The trainer that is held to CLAP's official code, at a small constant rate on all shots."""
    data, anchors, penalties = setting
    steps = 20_000
    slow = train_cosine_probe(
        data.X, data.y, anchors, penalties, iter([None] * steps), np.full(steps, 0.02), scale=SCALE, momentum=0.9
    )
    fast = fit_cosine_probe(data.X, data.y, anchors, penalties, scale=SCALE, iterations=500)
    assert np.allclose(fast, slow, atol=1e-3)
