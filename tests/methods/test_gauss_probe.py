"""The pair is the sum of its sides, and each side alone is what it says."""

import numpy as np
import pytest

from kshot.errors import InputError
from kshot.methods.evidence import prepare
from kshot.methods.fast_probe import FastProbe
from kshot.methods.fold_gda import FoldGDA
from kshot.methods.gauss_probe import GaussProbe, LeftOutShots
from kshot.solvers.stacking import joint_information
from problems import problem

COUNTS = [1, 5, 3, 2, 7, 4]
SCALES = {"logit_scale": 20.0, "anchor_scale": 3.0}


def scores(method, data, **given):
    return method.fit(data.X, data.y, text=data.text, **given).decision_function(data.test.X)


def in_units_of_its_spread(method, data):
    head = method.fit(data.X, data.y, text=data.text)
    return head.decision_function(data.test.X) / head.decision_function(data.X).std(axis=1).mean()


def parts(data):
    return [in_units_of_its_spread(m, data) for m in (FastProbe(iterations=12, **SCALES), FoldGDA(logit_scale=20.0))]


def test_without_stacking_both_sides_count_alike():
    data = problem(counts=COUNTS, noise=1.0)
    assert np.allclose(scores(GaussProbe(stacked=False, **SCALES), data), sum(parts(data)))


def test_it_is_the_sum_of_its_sides_by_the_weights_it_tells():
    """The probe is warm-started, so it is compared where both have converged."""
    data = problem(counts=COUNTS, noise=1.0)
    head = GaussProbe(iterations=300, **SCALES).fit(data.X, data.y, text=data.text)
    sides = FastProbe(iterations=300, **SCALES), FoldGDA(logit_scale=20.0)
    weights = [head.selected_[f"{name}_weight"].value for name in ("probe", "gaussian")]
    expected = sum(w * in_units_of_its_spread(m, data) for w, m in zip(weights, sides, strict=True))
    assert np.allclose(head.decision_function(data.test.X), expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize(("shots", "noise", "pull"), [(4, 0.6, 1.0), (8, 2.0, 8.0)])
def test_penalties_are_larger_where_that_makes_left_out_shots_likelier(shots, noise, pull):
    """Where pictures scatter much, a probe on CLAP's penalties learns their noise."""
    data = problem(classes=20, shots=shots, noise=noise, n_test=1500)
    head = GaussProbe(**SCALES).fit(data.X, data.y, text=data.text)
    assert head.selected_["pull"].value == pull
    plain = FastProbe(iterations=12, **SCALES).fit(data.X, data.y, text=data.text)
    ratio = head.selected_["penalties"].value["mean"] / plain.selected_["penalties"].value["mean"]
    assert ratio == pytest.approx(pull)
    task = prepare(GaussProbe.info, 1, data.X, data.y, text=data.text, constants=SCALES)
    held_out = {p: GaussProbe().half_probes(task, LeftOutShots.of(task), 12, p).held_out for p in (1.0, 8.0)}
    told = {p: joint_information(scores, [], data.y[LeftOutShots.of(task).rows]) for p, scores in held_out.items()}
    assert (told[8.0] > told[1.0]) == (pull == 8.0)


@pytest.mark.parametrize(("off", "kept"), [("gaussian", 0), ("probe", 1)])
def test_a_side_can_be_switched_off(off, kept):
    data = problem(counts=COUNTS, noise=1.0)
    found = scores(GaussProbe(stacked=False, **SCALES, **{off: False}), data)
    assert np.allclose(found, parts(data)[kept])
    assert np.isfinite(scores(GaussProbe(**SCALES, **{off: False}), data)).all()


def test_both_sides_off_is_an_error():
    data = problem()
    with pytest.raises(InputError, match="both off"):
        GaussProbe(probe=False, gaussian=False).fit(data.X, data.y, text=data.text)


def test_single_shots_leave_the_probe_held_by_a_text_that_tells_something():
    """The penalties are CLAP's times 1 + 15·told², told being what text tells of the shots as a share of log C."""
    data = problem(shots=1)
    scale, least = best_temperature(data.X @ (20.0 * data.text).T, data.y)
    told = 1 - least / np.log(6)
    plain = FastProbe(iterations=12, **SCALES).fit(data.X, data.y, text=data.text)
    for given in ({}, {"probe": False}):
        head = GaussProbe(**SCALES, **given).fit(data.X, data.y, text=data.text)
        assert 0 < told == pytest.approx(head.selected_["text_information"].value, abs=1e-3)
        ratio = head.selected_["penalties"].value["mean"] / plain.selected_["penalties"].value["mean"]
        assert ratio == pytest.approx(1 + 15 * told**2, rel=1e-2)
        lengths = np.linalg.norm(head.coef_, axis=1)
        assert lengths == pytest.approx(20.0 * scale**told, rel=1e-2)


def test_a_text_that_tells_nothing_leaves_the_plain_probe():
    data = problem(shots=1)
    turned = np.roll(data.text, 1, axis=0)
    head = GaussProbe(**SCALES).fit(data.X, data.y, text=turned)
    plain = FastProbe(iterations=12, **SCALES).fit(data.X, data.y, text=turned)
    assert head.selected_["text_information"].value < 0.01
    assert np.allclose(head.coef_, plain.coef_, atol=0.05 * np.abs(plain.coef_).max())


def test_one_class_is_no_question():
    head = GaussProbe().fit(np.eye(3)[:1], [0], text=np.eye(3)[:1])
    assert np.isfinite(head.coef_).all()


def best_temperature(scores, y):
    """The factor with the least cross-entropy, and that cross-entropy."""
    found = []
    for scale in np.geomspace(1e-3, 20, 2001):
        logits = scale * scores
        found.append((np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(y)), y]), scale))
    return min(found)[::-1]


def test_probabilities_are_right_on_pictures_that_were_not_seen():
    """One temperature more, fitted on the test labels, gains next to nothing."""
    data = problem(classes=12, shots=8, noise=1.4, n_test=1500)
    head = GaussProbe(**SCALES).fit(data.X, data.y, text=data.text)
    scored = head.decision_function(data.test.X)

    def cross_entropy(temperature):
        logits = scored / temperature
        own = logits[np.arange(len(logits)), data.test.y]
        return np.mean(np.log(np.exp(logits).sum(axis=1)) - own)

    best = min(cross_entropy(t) for t in np.linspace(0.3, 3, 271))
    assert cross_entropy(1.0) < best + 0.03


def test_the_probe_learns_from_every_view():
    """Views as rows of their own are the same as so many shots, for the probe alone."""
    data = problem(noise=1.0)
    views = data.X + 0.3 * np.random.default_rng(1).normal(size=(3, *data.X.shape))
    viewed = scores(FastProbe(**SCALES), data, views=views)
    rows = FastProbe(**SCALES).fit(views.reshape(-1, data.X.shape[1]), np.tile(data.y, 3), text=data.text)
    assert np.allclose(viewed, rows.decision_function(data.test.X))
