"""Left-out estimates and sets of classes against brute force and other libraries."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kshot.methods import registry
from kshot.pictures.assess import KEPT_SHARE, conformal_threshold, margins
from kshot.pictures.head import PictureHead
from kshot.pictures.held_out import (
    GROWTH,
    SPREAD,
    Shots,
    carried,
    folds,
    gain,
    left_out_scores,
    paired_difference,
    wilson,
)
from kshot.pictures.predict import predict_feature
from kshot.solvers.softmax import calibrate


def shots(counts, seed=0, d=12):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    text = rng.normal(size=(len(counts), d))
    X = text[y] + 0.8 * rng.normal(size=(len(y), d))
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, text)]
    return Shots(unit[0].astype(np.float32), y, unit[1].astype(np.float32))


@pytest.mark.parametrize(("correct", "total"), [(0, 5), (3, 8), (48, 48), (60, 100)])
def test_wilson_solves_its_equation(correct, total):
    """Its ends are the shares p whose normal test just rejects the count: |count − np| = 1.96·√(np(1 − p))."""
    found = wilson(correct, total)
    for share in {found.low, found.high} - {0.0, 1.0}:
        assert abs(correct - total * share) == pytest.approx(1.959964 * np.sqrt(total * share * (1 - share)), rel=1e-5)


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


@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 4), (7, 8)])
def test_the_odds_of_a_right_answer_grow_by_a_power_of_the_shots(before, after):
    found = carried(60, 100, before, after)
    odds = 60.5 / 40.5 * (after / before) ** GROWTH
    assert found.value == pytest.approx(odds / (1 + odds))
    steps = np.log(after / before)
    ends = np.log([share / (1 - share) for share in (found.low, found.high)])
    half = 1.959964 * np.sqrt(101**2 / (100 * 60.5 * 40.5) + (SPREAD * steps) ** 2)
    assert ends == pytest.approx(np.log(odds) + np.array([-half, half]))


def test_without_more_shots_the_interval_is_near_wilsons():
    for correct in (30, 80):
        found, plain = carried(correct, 100, 4, 4), wilson(correct, 100)
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.01)


def test_gains_follow_one_curve():
    """Two steps are as much as one over both, and the expected accuracy is the measured one plus its gain."""
    first = gain(0.6, 3, 4).value
    both = first + gain(0.6 + first, 4, 5).value
    assert both == pytest.approx(gain(0.6, 3, 5).value)
    share = (60 + 0.5) / 101
    assert carried(60, 100, 3, 4).value - share == pytest.approx(gain(share, 3, 4).value)
    less, more = gain(0.6, 3, 4).low, gain(0.6, 3, 4).high
    assert less < 0 < first < more


def test_the_interval_of_a_difference_covers():
    """Also with four pictures, all of them better, where Wald's has no width."""
    rng = np.random.default_rng(0)
    for total, shares in ((4, (0.3, 0.2, 0.5)), (20, (0.2, 0.1, 0.7)), (100, (0.1, 0.05, 0.85))):
        drawn = rng.multinomial(total, shares, size=4000)
        ends = [paired_difference(int(better), int(worse), total) for better, worse, _ in drawn]
        assert np.mean([one.low <= shares[0] - shares[1] <= one.high for one in ends]) >= 0.93
    assert paired_difference(4, 0, 4).low < 1


@pytest.mark.parametrize("pictures", [19, 25, 40, 160])
def test_exchangeable_pictures_reach_the_threshold_as_often_as_promised(pictures):
    """Of values in random order the last is below the k-th smallest of the others with probability k/(M + 1)."""
    draws = np.random.default_rng(pictures).gamma(0.5, size=(4000, pictures + 1))
    reached = np.mean([row[-1] >= conformal_threshold(row[:-1]) for row in draws])
    expected = 1 - int((1 - KEPT_SHARE) * (pictures + 1) + 1e-9) / (pictures + 1)
    assert expected >= KEPT_SHARE
    assert reached == pytest.approx(expected, abs=0.015)


def test_too_few_pictures_promise_nothing():
    assert conformal_threshold(np.linspace(0, 1, 18)) is None
    assert conformal_threshold(np.linspace(0, 1, 19)) == 0


def test_the_margin_is_one_of_probabilities():
    """Programs that only have probabilities, as those of an exported graph, find the same."""
    logits = np.random.default_rng(0).normal(size=(5, 7)) * 4
    logs = np.log(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(margins(logits), logs.max(axis=1) - logs.mean(axis=1))


def test_a_prediction_names_what_reaches_the_threshold(shades, fit, tmp_path):
    head = fit(shades).head
    assert head.about.set_threshold is None
    assert predict_feature(head, "x", head.shots.X[0]).one_of == ()
    own = np.sort(head.probabilities(head.shots.X[:1])[0])
    for threshold, count in ((own[0], 3), (own[1], 2), (own[2], 1), (1.1, 1)):
        asked = replace(head, about=replace(head.about, set_threshold=float(threshold)))
        asked.save(tmp_path / "head.safetensors")
        said = predict_feature(PictureHead.load(tmp_path / "head.safetensors"), "x", head.shots.X[0], top=1)
        assert len(said.one_of) == count
        assert said.one_of[0] == said.top[0].name
