"""Views go with their picture: whoever sees a shot may get its views, and of no other picture."""

from dataclasses import replace

import numpy as np
import pytest

from kshot.bench.strata import check_views
from kshot.bench.study import Grid, MethodSpec, Study
from kshot.data.episode import draw_support
from kshot.data.simulated import BACKBONE, WORLDS, write
from kshot.data.store import Store, view_part
from kshot.data.stratum import load_stratum
from kshot.errors import EvidenceError, FeatureError, StudyError
from kshot.types import Views

NAME = "sim-satellite"
TIP, CLAP = Views("tip", 3), Views("clap", 2)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Generated views that lie in the store in another order than their pictures."""
    store = Store(tmp_path_factory.mktemp("features"))
    write(WORLDS[NAME], store)
    pool = store.images(NAME, BACKBONE, "pool")
    rng = np.random.default_rng(0)
    for views in (TIP, CLAP):
        for number in range(views.count):
            order = rng.permutation(len(pool.ids))
            X = (np.asarray(pool.X, np.float32) + rng.normal(0, 0.05, pool.X.shape)).astype(np.float16)
            ids = [pool.ids[row] for row in order]
            part = view_part("pool", views.recipe, number)
            store.write_images(NAME, BACKBONE, part, X[order], pool.y[order], ids, pool.manifest.classes)
    return store


@pytest.fixture(scope="module")
def stratum(store):
    return load_stratum(store, NAME, BACKBONE, views=(TIP, CLAP))


@pytest.mark.parametrize("views", [TIP, CLAP])
def test_views_are_those_of_the_drawn_pictures_in_their_order(store, stratum, views):
    seen = stratum.episode(4, 1, None).reveal(frozenset({"support"}), views)
    ids = [stratum.pool_ids[int(np.flatnonzero((row == stratum.pool.X).all(axis=1))[0])] for row in seen.support.X]
    assert seen.views.shape == (views.count, *seen.support.X.shape)
    for number in range(views.count):
        part = store.images(NAME, BACKBONE, view_part("pool", views.recipe, number))
        for shot, name in enumerate(ids):
            row = np.asarray(part.X[part.ids.index(name)], np.float64)
            np.testing.assert_allclose(seen.views[number, shot], row / np.linalg.norm(row), atol=1e-6)
            assert part.y[part.ids.index(name)] == seen.support.y[shot]


def test_views_are_given_to_nobody_who_does_not_ask_or_does_not_see_the_shots(stratum):
    episode = stratum.episode(2, 0, None)
    assert "views" not in episode.reveal(frozenset({"support"})).fit_arguments()
    with pytest.raises(EvidenceError, match="it asked for 'views'"):
        _ = episode.reveal(frozenset({"pool", "test"}), TIP).views


def test_nobody_can_write_to_views(stratum):
    views = stratum.episode(2, 0, None).reveal(frozenset({"support"}), TIP).views
    with pytest.raises(ValueError, match="read-only"):
        views[0, 0, 0] = 1


@pytest.mark.parametrize("change", ["another picture", "another label"])
def test_views_of_other_pictures_are_refused(tmp_path, change):
    store = Store(tmp_path)
    write(WORLDS[NAME], store)
    pool = store.images(NAME, BACKBONE, "pool")
    X, y, ids = np.array(pool.X), np.array(pool.y), list(pool.ids)
    if change == "another picture":
        ids[0] = "test/000000"
    else:
        y[0] = 1
    store.write_images(NAME, BACKBONE, "pool-tip-view00", X, y, ids, pool.manifest.classes)
    with pytest.raises(FeatureError, match="pool-tip-view00 holds views of other pictures than pool"):
        load_stratum(store, NAME, BACKBONE, views=[Views("tip", 1)])


def test_views_of_drawn_pictures_only_serve_these_draws_and_no_other(tmp_path):
    store = Store(tmp_path)
    write(WORLDS[NAME], store)
    pool = store.images(NAME, BACKBONE, "pool")
    rows = draw_support(NAME, pool.ids, np.array(pool.y), 2, 0)
    ids = [pool.ids[row] for row in rows]
    X, y = np.array(pool.X)[rows], np.array(pool.y)[rows]
    store.write_images(NAME, BACKBONE, "pool-tip-view00", X, y, ids, pool.manifest.classes)
    stratum = load_stratum(store, NAME, BACKBONE, views=[Views("tip", 1)])
    views = stratum.episode(2, 0, None).reveal(frozenset({"support"}), Views("tip", 1)).views
    np.testing.assert_array_equal(views[0], stratum.episode(2, 0, None).reveal(frozenset({"support"})).support.X)
    with pytest.raises(FeatureError, match="the stored views lack the picture"):
        stratum.episode(3, 0, None)
    grid = Grid((NAME,), (BACKBONE,), ("template",), (2, 3), (0,), (MethodSpec("clap", "clap", views=Views("tip", 1)),))
    check_views(Study("s", (replace(grid, shots=(1, 2)),)), store)
    with pytest.raises(StudyError, match=r"draws pictures of .* whose 1 tip views by .* are not stored"):
        check_views(Study("s", (grid,)), store)
