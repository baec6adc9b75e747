"""A batch is used where hidden shots gain by it, and only then."""

import numpy as np
import pytest

from kshot import GaussProbe
from kshot.methods.evidence import prepare
from kshot.methods.gauss_together import GaussTogether, hidden_shots
from problems import problem


def probabilities(data, queries, **params):
    head = GaussTogether(**params).fit(data.X, data.y, text=data.text, queries=queries)
    return head, head.predict_proba(queries)


def one_by_one(data, queries):
    return GaussProbe().fit(data.X, data.y, text=data.text).predict_proba(queries)


def test_a_batch_of_all_classes_is_used_where_pictures_scatter():
    data = problem(classes=8, shots=4, noise=1.0, n_test=800)
    head, together = probabilities(data, data.test.X)
    alone = one_by_one(data, data.test.X)
    assert head.selected_["weight"].value > 0
    assert head.selected_["gain"].value > np.log(8)
    assert np.mean(together.argmax(axis=1) == data.test.y) > np.mean(alone.argmax(axis=1) == data.test.y)


def test_a_batch_of_one_class_is_left_alone():
    """Its clusters are not the classes, so the hidden shots of the others lose by it."""
    data = problem(classes=8, shots=4, noise=1.0, n_test=800)
    queries = data.test.X[data.test.y == 0]
    head, together = probabilities(data, queries)
    assert head.selected_["weight"].value == 0
    assert np.allclose(together, one_by_one(data, queries), atol=1e-6)


def test_with_single_shots_none_can_be_hidden():
    data = problem(shots=1)
    head, together = probabilities(data, data.test.X)
    assert head.selected_["weight"].value == 0
    assert np.allclose(together, one_by_one(data, data.test.X), atol=1e-6)


def test_half_of_the_shots_with_siblings_are_hidden():
    data = problem(classes=4, counts=[1, 2, 3, 4])
    hidden = hidden_shots(prepare(GaussProbe.info, 1, data.X, data.y, text=data.text))
    assert np.bincount(data.y[hidden], minlength=4).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("weight", [0.0, 4.0])
def test_a_given_weight_is_kept_and_nothing_is_hidden(weight):
    data = problem(classes=4, shots=2, noise=1.0)
    head, found = probabilities(data, data.test.X, weight=weight)
    assert head.selected_["weight"].value == weight
    assert "gain" not in head.selected_
    assert (weight == 0) == np.allclose(found, one_by_one(data, data.test.X), atol=1e-6)


def test_the_order_of_the_queries_does_not_matter():
    data = problem(classes=4, shots=4, noise=1.0, n_test=80)
    order = np.random.default_rng(0).permutation(80)
    _, straight = probabilities(data, data.test.X)
    _, shuffled = probabilities(data, data.test.X[order])
    assert np.allclose(straight[order], shuffled, atol=1e-8)
