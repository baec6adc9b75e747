"""The calibration error against numbers one can work out by hand, and temperatures against the method's."""

import numpy as np
import pytest
from tools.calibration import (
    Judged,
    Numbers,
    answers,
    by_set,
    calibration_error,
    cross_entropy,
    judge,
    over_draws,
    paired,
)

from kshot.methods.calibrated import Calibrated
from kshot.methods.evidence import prepare
from kshot.methods.gauss_probe import GaussProbe
from problems import problem


def certain(share, n=300, C=4, seed=0):
    """Logits whose softmax says 0.7, and labels that agree in so many cases."""
    y = np.random.default_rng(seed).integers(0, C, n)
    right = np.arange(n) < share * n
    told = np.where(right, y, (y + 1) % C)
    return np.log(np.where(np.eye(C)[told] == 1, 0.7, 0.1)), y


def test_the_error_is_the_gap_between_hits_and_confidence():
    z, y = certain(1.0)
    assert calibration_error(answers(z, y)) == pytest.approx(30)
    z, y = certain(0.0)
    assert calibration_error(answers(z, y)) == pytest.approx(70)


def test_draws_of_one_number_of_shots_share_their_bins():
    draws = [certain(1.0, seed=0), certain(0.4, seed=1)]
    found = over_draws([Judged(answers(*draw), nll) for draw, nll in zip(draws, (1.0, 2.0), strict=True)])
    pooled = [np.concatenate(part) for part in zip(*draws, strict=True)]
    assert found.error == pytest.approx(calibration_error(answers(*pooled)))
    assert found.error < np.mean([calibration_error(answers(*draw)) for draw in draws])
    assert found.cross_entropy == pytest.approx(1.5)


def test_numbers_of_shots_weigh_alike():
    found = {("a", 2): Numbers(1.0, 2.0), ("a", 4): Numbers(3.0, 6.0), ("b", 4): Numbers(5.0, 7.0)}
    assert by_set(found, lambda k: k >= 2) == {"a": Numbers(2.0, 4.0), "b": Numbers(5.0, 7.0)}
    assert by_set(found, lambda k: k == 2) == {"a": Numbers(1.0, 2.0)}


def test_cross_entropy_is_minus_the_mean_log_probability():
    z, y = certain(0.5)
    assert cross_entropy(z, y) == pytest.approx(-(np.log(0.7) + np.log(0.1)) / 2)


def test_temperatures_are_those_of_the_calibrated_method():
    data, scales = problem(noise=1.0), {"logit_scale": 20.0, "anchor_scale": 3.0}
    task = prepare(GaussProbe.info, 1, data.X, data.y, text=data.text, constants=scales)
    for key, head in (("clap", Calibrated(method="clap", **scales)), ("gauss_probe", GaussProbe(**scales))):
        logits = head.fit(data.X, data.y, text=data.text).decision_function(data.test.X).astype(np.float64)
        assert judge(key, task, *data.test).cross_entropy == pytest.approx(cross_entropy(logits, data.test.y), rel=1e-5)


def test_differences_are_paired_over_the_sets_of_a_kind():
    ours = {"a": Numbers(1.0, 2.0), "b": Numbers(2.0, 3.0), "c": Numbers(0.0, 0.0)}
    other = {"a": Numbers(2.0, 2.5), "b": Numbers(3.0, 4.0), "c": Numbers(9.0, 9.0)}
    assert paired(ours, other, {"a", "b"}, 0).mean == pytest.approx(-1)
    found = paired(ours, other, {"a", "b"}, 1)
    assert found.mean == pytest.approx(-0.75)
    assert found.G == 2
