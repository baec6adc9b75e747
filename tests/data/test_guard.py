from dataclasses import replace

import numpy as np
import pytest

from kshot.data.simulated import BACKBONE, WORLDS, write
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import EvidenceError, FeatureError
from kshot.methods import registry
from kshot.methods.zero_shot import ZeroShot
from kshot.types import Labelled


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("features"))
    write(WORLDS["sim-satellite"], store)
    return store


@pytest.fixture(scope="module")
def episode(store):
    prior = load_prior(store, "sim-satellite", BACKBONE, "dataset")
    return load_stratum(store, "sim-satellite", BACKBONE).episode(4, 0, prior)


def test_undeclared_evidence_raises(episode):
    view = episode.reveal(frozenset({"text", "support"}))
    assert view.support.X.shape == (40, 256)
    for name in ("queries", "pool", "few_shot_validation", "validation", "test"):
        with pytest.raises(EvidenceError, match=f"sees support, text; it asked for '{name}'"):
            getattr(view, name)
    assert set(view.fit_arguments()) == {"text", "X", "y", "constants"}


@pytest.mark.parametrize("name", registry.names())
def test_the_runner_hands_over_exactly_what_is_declared(episode, name):
    sees = registry.create(name).info.sees
    arguments = set(episode.reveal(sees).fit_arguments())
    expected = {"constants"} | (set(sees) - {"support"}) | ({"X", "y"} if "support" in sees else set())
    assert arguments == expected


def test_a_method_cannot_change_the_evidence(episode):
    view = episode.reveal(frozenset({"text", "support", "test"}))
    for array in (view.text, view.support.X, view.support.y, view.test.X, view.test.y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_queries_are_all_test_pictures_in_an_order_that_does_not_depend_on_the_rows(store):
    stratum = load_stratum(store, "sim-satellite", BACKBONE)
    turned = np.arange(len(stratum.test.y))[::-1]
    test = Labelled(stratum.test.X[turned], stratum.test.y[turned])
    other = replace(stratum, test=test, test_ids=stratum.test_ids[::-1])
    first, second = (each.episode(2, 0, None).reveal(frozenset({"queries"})).queries for each in (stratum, other))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, stratum.test.X)
    assert sorted(map(bytes, first)) == sorted(map(bytes, stratum.test.X))
    assert not first.flags.writeable


@pytest.mark.parametrize(("shots", "drawn"), [(1, 1), (2, 2), (4, 4), (8, 4)])
def test_few_shot_validation_is_what_the_draw_would_take_next(store, shots, drawn):
    stratum = load_stratum(store, "sim-satellite", BACKBONE)
    view = stratum.episode(shots, 3, None).reveal(frozenset({"support", "few_shot_validation"}))
    assert np.bincount(view.few_shot_validation.y).tolist() == [drawn] * stratum.n_classes
    larger = stratum.episode(shots + drawn, 3, None).reveal(frozenset({"support"})).support
    together = np.concatenate([view.support.X, view.few_shot_validation.X])
    assert sorted(map(bytes, together)) == sorted(map(bytes, larger.X))


def test_a_method_that_looks_at_more_is_stopped(episode):
    class Peeking(ZeroShot):
        def fit(self, X=None, y=None, *, test, **evidence):
            return super().fit(**evidence)

    with pytest.raises(TypeError, match="test"):
        Peeking().fit(**episode.reveal(Peeking().info.sees).fit_arguments())


def test_support_and_residue_make_the_pool(episode, store):
    view = episode.reveal(frozenset({"support", "pool"}))
    pool = load_stratum(store, "sim-satellite", BACKBONE).pool
    both = np.concatenate([view.support.X, view.pool.X])
    assert len(both) == len(pool.X)
    assert len(np.unique(both.round(6), axis=0)) == len(pool.X)


def test_a_picture_in_pool_and_test_is_refused(tmp_path):
    store = Store(tmp_path)
    X, y = np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1])
    store.write_images("d", "b", "pool", X, y, ["1", "2", "3", "4"], ["x", "y"])
    store.write_images("d", "b", "test", X, y, ["4", "5", "6", "7"], ["x", "y"])
    with pytest.raises(FeatureError, match=r"1 pictures of d/b are in pool and test \(first: 4\)"):
        load_stratum(store, "d", "b")
