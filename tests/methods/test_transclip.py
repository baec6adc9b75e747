"""Transduction: what the order and the company of the queries may change."""

import numpy as np
import pytest

from kshot import TransCLIP
from kshot.errors import EvidenceError, InputError, UndefinedError
from problems import problem


def fitted(data, queries, **params):
    return TransCLIP(**params).fit(data.X, data.y, text=data.text, queries=queries)


@pytest.mark.parametrize("seed", range(4))
def test_permuting_the_queries_changes_nothing_once_rows_are_aligned(seed):
    data = problem(seed=seed, noise=1.0, n_test=80)
    order = np.random.default_rng(seed).permutation(80)
    straight = fitted(data, data.test.X, aligned=True).decision_function(data.test.X)
    shuffled = fitted(data, data.test.X[order], aligned=True).decision_function(data.test.X)
    assert np.allclose(straight, shuffled, atol=1e-10)


def test_the_official_stacking_depends_on_the_order_of_the_queries():
    data = problem(noise=1.0, n_test=80)
    order = np.random.default_rng(0).permutation(80)
    straight = fitted(data, data.test.X).decision_function(data.test.X)
    shuffled = fitted(data, data.test.X[order]).decision_function(data.test.X)
    assert np.abs(straight - shuffled).max() > 1e-3


@pytest.mark.parametrize("aligned", [False, True])
def test_a_query_is_judged_among_the_others(aligned):
    data = problem(noise=1.0, n_test=80)
    alone = fitted(data, data.test.X[:20], aligned=aligned).decision_function(data.test.X[:20])
    among = fitted(data, data.test.X, aligned=aligned).decision_function(data.test.X[:20])
    assert not np.allclose(alone, among)
    assert np.allclose(np.exp(among).sum(axis=1), 1)


def test_it_has_no_answer_for_pictures_that_it_was_not_given():
    data = problem()
    head = fitted(data, data.test.X)
    with pytest.raises(InputError, match="48 of the 48 pictures are not among the 60 queries"):
        head.predict(data.pool.X)
    assert np.array_equal(head.predict(data.test.X[7:9]), head.predict(data.test.X)[7:9])


@pytest.mark.parametrize("aligned", [False, True])
def test_few_queries_duplicates_and_two_classes(aligned):
    data = problem(classes=2, shots=1)
    with pytest.raises(UndefinedError, match="needs 4 queries; there are 3"):
        fitted(data, data.test.X[:3], aligned=aligned)
    assert np.isfinite(fitted(data, data.test.X[:4], aligned=aligned).assignments_).all()
    twins = np.repeat(data.test.X[:5], 4, axis=0)
    found = fitted(data, twins, aligned=aligned).decision_function(twins)
    assert np.isfinite(found).all()
    with pytest.raises(EvidenceError, match="queries"):
        TransCLIP().fit(data.X, data.y, text=data.text)
