"""The pair is the sum of its sides, and each side alone is what it says."""

import numpy as np
import pytest

from kshot.errors import InputError
from kshot.methods.evidence import prepare
from kshot.methods.fast_probe import FastProbe, learn_probe
from kshot.methods.fold_gda import FoldGDA
from kshot.methods.gauss_probe import GaussProbe, LeftOutShots
from kshot.methods.taskres import TaskRes
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


def test_one_shot_adds_three_heads_in_units_of_their_spread_over_wrong_classes():
    """Every number of the rule, computed again: i by a search, the heads by their own classes or by hand."""
    data = problem(shots=1)
    scale, least = best_temperature(data.X @ (20.0 * data.text).T, data.y)
    i = 1 - least / np.log(6)
    head = GaussProbe(**SCALES).fit(data.X, data.y, text=data.text)
    assert 0 < i == pytest.approx(head.selected_["text_information"].value, abs=1e-3)
    probe = held_probe(data, i)
    residual = TaskRes(**SCALES).fit(data.X, data.y, text=data.text)
    gaussian = nearest_shrunk_mean(data)
    e = 2 * (1 / 8 + 7 / 8 * (1 - i) ** 4)
    parts = [score(data.test.X) / rivals_apart(score(data.X), data.y) for score in (probe, residual.scores, gaussian)]
    own = rivals_apart(probe(data.X), data.y) * scale**i
    expected = own * (parts[0] + parts[1] + e * parts[2]) / (2 + e)
    found, expected = (z - z.mean(axis=1, keepdims=True) for z in (head.scores(data.test.X), expected))
    assert np.allclose(found, expected, atol=5e-3 * np.abs(expected).max())


def held_probe(data, i):
    """The probe under penalties of CLAP times 1 + 15·i²."""
    task = prepare(GaussProbe.info, 1, data.X, data.y, text=data.text, constants=SCALES)
    weights, _ = learn_probe(task, 12, pull=1 + 15 * i**2)
    directions = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    return lambda X: 20.0 * X @ directions.T


def nearest_shrunk_mean(data):
    """Squared distances to (shot + 4·prior)/5, the prior being text moved and scaled onto the shots."""
    shots, T = data.X[np.argsort(data.y)], data.text - data.text.mean(axis=0)
    centre = shots.mean(axis=0)
    slope = np.polyfit(T.ravel(), (shots - centre).ravel(), 1)[0]
    means = (shots + 4 * (centre + slope * T)) / 5
    return lambda X: -((X[:, None] - means) ** 2).sum(axis=2) / 2


def rivals_apart(scores, y):
    return np.mean([np.delete(row, own).std() for row, own in zip(scores, y, strict=True)])


def test_a_text_that_gets_every_shot_right_does_not_make_one_shot_certain():
    """Without a prior the best scale of such a text is as large as allowed."""
    data = problem(classes=20, shots=1, noise=0.1)
    shots = data.X[np.argsort(data.y)]
    head = GaussProbe().fit(shots, np.arange(20), text=shots)
    assert head.selected_["text_information"].value > 0.99
    between = head.predict_proba(0.55 * shots + 0.45 * np.roll(shots, 1, axis=0)).max(axis=1)
    assert between.mean() < 0.93


def test_two_classes_have_one_wrong_class_and_no_spread_over_it():
    data = problem(classes=2, shots=1)
    assert GaussProbe(**SCALES).fit(data.X, data.y, text=data.text).score(data.test.X, data.test.y) > 0.5


def test_one_class_is_no_question():
    head = GaussProbe().fit(np.eye(3)[:1], [0], text=np.eye(3)[:1])
    assert np.isfinite(head.coef_).all()


def best_temperature(scores, y):
    """The likeliest factor, whose logarithm has a normal prior, and the mean cross-entropy there."""
    found = []
    for scale in np.geomspace(1e-3, 20, 2001):
        logits = scale * scores
        loss = np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(y)), y])
        found.append((len(y) * loss + np.log(scale) ** 2 / 2, scale, loss))
    return min(found)[1:]


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
