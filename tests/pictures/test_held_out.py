"""Left-out estimates against brute force and other libraries."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest

from kshot.methods import registry
from kshot.pictures.held_out import Curve, Shots, folds, left_out_scores, paired_difference, wilson
from kshot.pictures.suspects import repeated
from kshot.solvers.temperature import calibrate


def shots(counts, seed=0, d=12):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    text = rng.normal(size=(len(counts), d))
    X = text[y] + 0.8 * rng.normal(size=(len(y), d))
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, text)]
    return Shots(unit[0].astype(np.float32), y, unit[1].astype(np.float32))


@pytest.mark.parametrize(("correct", "total"), [(0, 5), (3, 8), (48, 48), (60, 100)])
def test_wilson_is_scipys(correct, total):
    theirs = binomtest(correct, total).proportion_ci(0.95, "wilson")
    ours = wilson(correct, total)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_every_fold_leaves_one_of_each_class_and_only_pictures_stay():
    own = shots([3, 3, 1, 2])
    fold = folds(own)
    assert fold.tolist() == [0, 1, 2, 0, 1, 2, -1, 0, 1]


def test_scores_come_from_heads_that_did_not_see_the_picture():
    own = shots([4, 4, 4])
    fold = folds(own)
    scores = left_out_scores(lambda: registry.create("ncm"), own, fold)
    for row in range(len(own.y)):
        kept = fold != fold[row]
        head = registry.create("ncm").fit(own.X[kept], own.y[kept])
        np.testing.assert_allclose(scores[row], head.decision_function(own.X[row : row + 1])[0], rtol=1e-5)
    moved = Shots(own.X.copy(), own.y, own.text)
    moved.X[0] = -moved.X[0]
    changed = left_out_scores(lambda: registry.create("ncm"), moved, fold)
    np.testing.assert_array_equal(changed[fold == 0][1:], scores[fold == 0][1:])


def test_temperature_is_the_minimum_of_the_smoothed_loss():
    own = shots([30, 30, 30, 30], seed=2)
    scores = own.X @ own.text.T

    def loss(log_t):
        logits = scores.astype(float) / np.exp(log_t)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        smooth = 1 / (len(own.y) + 1)
        target = (1 - smooth) * np.eye(4)[own.y] + smooth / 4
        return -(target * logs).sum(axis=1).mean()

    best = np.exp(minimize_scalar(loss, bounds=(-6, 3), method="bounded").x)
    assert calibrate(scores, own.y) == pytest.approx(best, rel=0.03)


def test_curve_and_paired_difference():
    half, most = np.arange(10) < 5, np.arange(10) < 6
    curve = Curve((1.0, 3.0), (half, most))
    assert curve.gain(3.0, 7.0) == pytest.approx(0.1)
    assert Curve((1.0, 3.0), (most, half)).gain(3.0, 7.0) == 0
    found = paired_difference(np.array([1, 1, 1, 0]), np.array([1, 0, 0, 0]))
    assert found.value == 0.5
    assert found.low < 0.5 < found.high


def test_interval_is_carried_along_the_curve():
    """From one and three shots to seven is one more step: 2·more − few, resampled picture by picture."""
    rng = np.random.default_rng(3)
    few, more = rng.random(200) < 0.5, rng.random(200) < 0.6
    found = Curve((1.0, 3.0), (few, more)).accuracy(7.0)
    resampled = rng.integers(0, 200, (20_000, 200))
    carried = (2.0 * more - few)[resampled].mean(axis=1)
    assert found.value == more.mean()
    assert found.low == wilson(int(more.sum()), 200).low
    assert found.high == pytest.approx(np.quantile(carried, 0.975), abs=0.01)


def test_more_shots_never_lower_the_interval():
    worse = Curve((1.0, 3.0), (np.ones(20, bool), np.arange(20) < 10)).accuracy(7.0)
    plain = wilson(10, 20)
    assert (worse.low, worse.high) == (plain.low, plain.high)


def test_copies_count_once_within_a_class():
    assert repeated(["a", "a", "b", "a"], [0, 0, 0, 1]) == [1]
