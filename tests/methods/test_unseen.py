"""Classes without shots join a head by their text, in the head's own units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshot.methods import registry
from kshot.methods.headfile import load_head, save_head
from kshot.testing.problems import problem

COUNTS = [4, 5, 0, 4, 0, 3]
SEEN, UNSEEN = [0, 1, 3, 5], [2, 4]
LINEAR, KERNEL, TEXT_SIDE = "gda_alpha1", "tip_adapter", "rla"


def fitted(name, data, **params):
    method = registry.create(name, **params)
    return method.fit(**data.evidence(method.info.sees), classes=range(len(data.text)))


@pytest.mark.parametrize("name", [LINEAR, KERNEL])
@given(st.integers(0, 2**32 - 1))
def test_the_slope_is_a_regression_with_one_constant_per_picture(name, seed):
    data = problem(seed, counts=COUNTS).cast(np.float64)
    head = fitted(name, data)
    text = data.text / np.linalg.norm(data.text, axis=1, keepdims=True)
    X = data.X / np.linalg.norm(data.X, axis=1, keepdims=True)
    scores, cosines = head.scores(X)[:, SEEN].ravel(), (X @ text[SEEN].T).ravel()
    pictures = np.repeat(np.eye(len(X)), len(SEEN), axis=0)
    slope = np.linalg.lstsq(np.column_stack([cosines, pictures]), scores, rcond=None)[0][0]
    assert head.selected_["text_slope"].value == pytest.approx(max(slope, 0), rel=1e-6, abs=1e-6)
    queries = data.test.X / np.linalg.norm(data.test.X, axis=1, keepdims=True)
    found = head.scores(queries)
    expected = found[:, SEEN].mean(axis=1) + max(slope, 0) * queries @ (text[2] - text[SEEN].mean(axis=0))
    assert np.allclose(found[:, 2], expected, rtol=1e-6, atol=1e-6)


def test_a_head_that_is_text_gets_its_own_rows_back():
    """GDA of one shot per class is zero-shot."""
    data = problem(counts=[1, 1, 0, 1, 0, 1]).cast(np.float64)
    head = fitted(LINEAR, data)
    text = data.text / np.linalg.norm(data.text, axis=1, keepdims=True)
    assert np.allclose(head.coef_, 100 * text)
    assert head.selected_["text_slope"].value == pytest.approx(100)


@pytest.mark.parametrize("name", [LINEAR, KERNEL, TEXT_SIDE])
def test_asked_about_some_classes_only(name):
    data = problem(counts=COUNTS)
    head = fitted(name, data)
    new = head.among([4, 2])
    assert np.allclose(new.scores(data.test.X), head.scores(data.test.X)[:, [4, 2]])
    assert np.allclose(new.predict_proba(data.test.X).sum(axis=1), 1)
    assert set(new.predict(data.test.X)) <= {2, 4}
    assert np.allclose(new.among([2]).scores(data.test.X), new.scores(data.test.X)[:, [1]])
    assert head.scores(data.test.X).shape[1] == 6


@pytest.mark.parametrize("name", [LINEAR, KERNEL, TEXT_SIDE])
def test_such_a_head_round_trips_and_a_second_fit_forgets_the_first(name, tmp_path):
    data, whole = problem(counts=COUNTS), problem()
    head = fitted(name, data)
    save_head(head, tmp_path / "head")
    assert np.array_equal(load_head(tmp_path / "head").scores(data.test.X), head.scores(data.test.X))
    again = head.fit(whole.X, whole.y, text=whole.text).scores(whole.test.X)
    assert np.array_equal(again, fitted(name, whole).scores(whole.test.X))


def test_text_that_says_nothing_never_wins():
    data = problem(counts=COUNTS)
    same = data.sent_through(lambda rows: rows, lambda y: y, np.repeat(data.text[:1], 6, axis=0))
    assert fitted(LINEAR, same).selected_["text_slope"].value == 0


def test_one_class_with_shots_is_too_few_to_learn_units_from():
    data = problem(classes=2, counts=[4, 0])
    assert np.isfinite(fitted(LINEAR, data).scores(data.test.X)).all()
