"""Calibration changes probabilities and no prediction."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss

from kshot.errors import InputError, UndefinedError
from kshot.methods import registry
from kshot.methods.calibrated import Calibrated
from kshot.solvers.softmax import in_range_of
from kshot.testing.problems import problem

HEADS = ["loo_blend", "ncm", "gda_alpha1", "fold_gda", "lpp", "tip_adapter_loo"]


@pytest.mark.parametrize("by", ["folds", "range"])
@pytest.mark.parametrize("name", HEADS)
def test_predictions_stay(name, by):
    data = problem(shots=5)
    plain = registry.create(name)
    given = data.evidence(plain.info.sees)
    if by == "range" and "text" not in plain.info.sees:
        with pytest.raises(InputError, match="no zero-shot range"):
            Calibrated(method=name, by=by).fit(**given)
        return
    found = Calibrated(method=name, by=by).fit(**given)
    assert np.array_equal(found.predict(data.test.X), plain.fit(**given).predict(data.test.X))
    assert np.allclose(found.predict_proba(data.test.X).sum(axis=1), 1)


def test_the_temperature_is_the_best_on_shots_that_each_fold_left_out():
    """By hand: leave the j-th closest shot of every class out, score it by a head of the others."""
    data = problem(shots=4, noise=1.2)
    closeness = np.einsum("nd,nd->n", data.X, data.text[data.y])
    scores, labels = [], []
    for j in range(4):
        out = np.zeros(len(data.y), bool)
        for c in range(6):
            own = np.flatnonzero(data.y == c)
            out[own[np.argsort(-closeness[own])[j]]] = True
        head = registry.create("ncm").fit(data.X[~out], data.y[~out])
        scores.append(head.scores(data.X[out]))
        labels.append(data.y[out])
    z, y = np.concatenate(scores), np.concatenate(labels)

    def loss(temperature):
        logs = log_softmax(z / temperature, axis=1)
        smooth = 1 / (len(y) + 1)
        return -((1 - smooth) * logs[np.arange(len(y)), y] + smooth * logs.mean(axis=1)).mean()

    grid = np.geomspace(1e-3, 10, 4000)
    best = grid[np.argmin([loss(t) for t in grid])]
    # NCM itself reads no text; the wrapper then takes shots as they come, so the order is set to that here.
    order = np.concatenate([np.flatnonzero(data.y == c)[np.argsort(-closeness[data.y == c])] for c in range(6)])
    found = Calibrated(method="ncm").fit(data.X[order], data.y[order])
    assert found.temperature_ == pytest.approx(best, rel=0.03)
    raw, put_right = (
        log_loss(data.test.y, head.predict_proba(data.test.X).astype(float))
        for head in (registry.create("ncm").fit(data.X, data.y), found)
    )
    assert put_right < raw


def test_every_picture_gets_the_range_of_its_reference():
    rng = np.random.default_rng(0)
    scores, reference = rng.normal(size=(7, 5)), 10 * rng.normal(size=(7, 5)) + 3
    found = in_range_of(scores, reference)
    assert np.allclose(found.min(axis=1), reference.min(axis=1))
    assert np.allclose(found.max(axis=1), reference.max(axis=1))
    assert np.array_equal(np.argsort(found, axis=1), np.argsort(scores, axis=1))
    assert np.allclose(in_range_of(reference, reference), reference)
    assert np.isfinite(in_range_of(np.zeros((2, 5)), reference[:2])).all()


def test_folds_need_a_shot_to_leave_out():
    data = problem(shots=1)
    with pytest.raises(UndefinedError, match="needs 2 shots"):
        Calibrated(method="ncm").fit(data.X, data.y)
    with pytest.raises(InputError, match="no shots that could be left out"):
        Calibrated(method="zero_shot").fit(text=data.text)
