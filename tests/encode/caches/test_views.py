"""Caches of augmented views, in the layouts that GDA's and CLAP's code makes."""

from pathlib import Path

import numpy as np
import pytest
from torch_files import save_all

from kshot.bench.study import load_study
from kshot.data.store import Store, view_part
from kshot.data.stratum import load_stratum
from kshot.runs import run
from kshot.types import Views

REST = ("--backbone", "mine", "--dataset", "pets", "--classes", "names.txt")
COUNT = 4


@pytest.fixture
def views(arrays):
    """Four views of every pool row, near to it: (4, N, d)."""
    noise = 0.1 * np.random.default_rng(1).normal(size=(COUNT, *arrays["X"].shape))
    made = arrays["X"] + noise
    return (made / np.linalg.norm(made, axis=-1, keepdims=True)).astype(np.float32)


def mean_rows(views):
    means = views.mean(axis=0)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def gda(arrays, views, *, keys=True, test="test"):
    """K_vecs_f.pt view after view beside Tip-Adapter's files; prompts one by one (C × prompts × d)."""
    e, n, d = views.shape
    Path("names.txt").write_text("cat\ndog\nfox\n")
    files = {"8_vecs_f": views.reshape(e * n, d), "8_labels_f": np.tile(arrays["y"], e)}
    files |= {"1_vecs_f": views[:, ::8].reshape(-1, d), "text_weights_cupl_t_all": np.stack([arrays["T"]] * 2, axis=1)}
    files |= {f"{test}_f": arrays["Xt"], f"{test}_l": arrays["yt"]}
    if keys:
        files |= {"keys_8shots": mean_rows(views).T, "values_8shots": np.eye(3, dtype=np.float16)[arrays["y"]]}
    save_all(Path("cache"), **files)
    return ("cache", *REST)


@pytest.mark.parametrize(("keys", "test"), [(True, "test"), (False, "test"), (False, "val")])
def test_gdas_views_lie_beside_the_pool(imported, arrays, views, keys, test):
    code, out, error = imported(*gda(arrays, views, keys=keys, test=test))
    assert (code, error) == (0, ""), error
    assert "4 views of each of 24 pictures" in out
    store = Store("features")
    pool = store.images("pets", "mine", "pool")
    assert np.allclose(pool.X, mean_rows(views), atol=1e-6)
    assert len(store.images("pets", "mine", "test").y) == len(arrays["yt"])
    assert np.allclose(store.text("pets", "mine", "cupl_t_all").prototypes, arrays["T"], atol=1e-6)
    for number in range(COUNT):
        assert np.array_equal(store.images("pets", "mine", view_part("pool", "tip", number)).X, views[number])


def test_a_study_uses_the_imported_views(imported, arrays, views):
    assert imported(*gda(arrays, views))[0] == 0
    Path("s.toml").write_text(
        'name = "s"\ndatasets = ["pets"]\nbackbones = ["mine"]\ntiers = ["cupl_t_all"]\nshots = [2]\nseeds = [0]\n'
        'methods = ["gda_alpha1", "clap"]\nviews = { recipe = "tip", count = 4 }\n'
    )
    rows = run(load_study("s.toml"), workers=1).to_arrow().to_pylist()
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert all('"tip", "4"' in row["recipe"] or "4" in row["recipe"] for row in rows)
    asked = Views("tip", COUNT)
    stratum = load_stratum(Store("features"), "pets", "mine", views=[asked])
    shown = stratum.episode(2, 0, None).reveal(frozenset({"support"}), asked)
    places = [np.abs(mean_rows(views) - x).sum(axis=1).argmin() for x in shown.support.X]
    assert np.allclose(shown.views, views[:, places], atol=1e-6)


def test_claps_views_are_shuffled_anew_each_time_and_are_matched(imported, arrays):
    """Twenty views, their number in CLAP's code; noise is small beside the distances of a class's pictures."""
    rng = np.random.default_rng(2)
    Path("names.txt").write_text("cat\ndog\nfox\n")
    orders = [rng.permutation(len(arrays["y"])) for _ in range(20)]
    shuffled = np.concatenate(
        [7 * (arrays["X"] + 0.02 * rng.normal(size=arrays["X"].shape))[order] for order in orders]
    )
    labels = np.concatenate([arrays["y"][order] for order in orders])
    train = {"features_train": shuffled.astype(np.float32), "labels_train": labels}
    save_all(Path("cache"), **train, features_test=arrays["Xt"], labels_test=arrays["yt"])
    code, out, error = imported("cache", *REST)
    assert (code, error) == (0, ""), error
    assert "another order each time" in out
    store = Store("features")
    pool = store.images("pets", "mine", "pool")
    first = orders[0]
    assert np.array_equal(pool.y, arrays["y"][first])
    assert np.allclose(pool.X, arrays["X"][first], atol=0.03)
    for number in range(20):
        assert np.allclose(store.images("pets", "mine", view_part("pool", "clap", number)).X, pool.X, atol=0.15)


@pytest.mark.parametrize(
    ("labels", "more", "said"),
    [
        (lambda y: np.sort(np.tile(y, 4)), (), "do not repeat"),
        (lambda y: np.tile(y, 4), ("--view-count", "5"), "are not 5 views"),
        (lambda y: np.tile(np.roll(y, 1), 4), ("--pool", "X,y"), "another order each time"),
        (lambda y: np.repeat(y[:6], 16), ("--pool", "X,y"), "hold other classes"),
        (lambda y: np.tile(y, 4), ("--view-recipe", "mine"), "unknown view recipe"),
    ],
)
def test_named_views(imported, arrays, views, labels, more, said):
    Path("names.txt").write_text("cat\ndog\nfox\n")
    np.savez("f.npz", **arrays, V=views.reshape(-1, 16), vy=labels(arrays["y"]))
    _, out, error = imported("f.npz", "--views", "V,vy", "--test", "Xt,yt", *more, *REST)
    assert said in out + error
