"""The pair is the sum of its sides, and each side alone is what it says."""

import numpy as np
import pytest

from kshot.errors import InputError
from kshot.methods.fast_probe import FastProbe
from kshot.methods.fold_gda import FoldGDA
from kshot.methods.gauss_probe import GaussProbe
from problems import problem

COUNTS = [1, 5, 3, 2, 7, 4]
SCALES = {"logit_scale": 20.0, "anchor_scale": 3.0}


def scores(method, data, **given):
    return method.fit(data.X, data.y, text=data.text, **given).decision_function(data.test.X)


def in_units_of_its_spread(method, data):
    head = method.fit(data.X, data.y, text=data.text)
    return head.decision_function(data.test.X) / head.decision_function(data.X).std(axis=1).mean()


def test_it_is_the_sum_of_its_sides():
    data = problem(counts=COUNTS, noise=1.0)
    expected = in_units_of_its_spread(FastProbe(**SCALES), data) + in_units_of_its_spread(
        FoldGDA(logit_scale=20.0), data
    )
    assert np.allclose(scores(GaussProbe(**SCALES), data), expected)


@pytest.mark.parametrize(
    ("off", "alone"), [("gaussian", FastProbe(**SCALES)), ("probe", FoldGDA(logit_scale=20.0))]
)
def test_a_side_can_be_switched_off(off, alone):
    data = problem(counts=COUNTS, noise=1.0)
    expected = in_units_of_its_spread(alone, data)
    assert np.allclose(scores(GaussProbe(**SCALES, **{off: False}), data), expected)


def test_both_sides_off_is_an_error():
    data = problem()
    with pytest.raises(InputError, match="both off"):
        GaussProbe(probe=False, gaussian=False).fit(data.X, data.y, text=data.text)


def test_single_shots_leave_the_probe():
    data = problem(shots=1)
    for given in ({}, {"probe": False}):
        head = GaussProbe(**SCALES, **given)
        assert np.allclose(scores(head, data), in_units_of_its_spread(FastProbe(**SCALES), data))
        assert "probe_spread" in head.selected_
        assert "gaussian_spread" not in head.selected_


def test_the_probe_learns_from_every_view():
    """Views as rows of their own are the same as so many shots, for the probe alone."""
    data = problem(noise=1.0)
    views = data.X + 0.3 * np.random.default_rng(1).normal(size=(3, *data.X.shape))
    viewed = scores(FastProbe(**SCALES), data, views=views)
    rows = FastProbe(**SCALES).fit(views.reshape(-1, data.X.shape[1]), np.tile(data.y, 3), text=data.text)
    assert np.allclose(viewed, rows.decision_function(data.test.X))
