"""Features from arrays: whoever made them, with labels of any kind; in memory the same as in a folder."""

import numpy as np
import pytest

import kshot
from kshot.data.memory import MemoryStore
from kshot.data.store import Store
from kshot.errors import FeatureError, InputError


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    T = rng.normal(size=(4, 16)).astype(np.float32)
    y, yt = np.repeat(np.arange(4), 9), np.tile(np.arange(4), 6)
    return {
        "pool": (3 * (T[y] + rng.normal(size=(36, 16))).astype(np.float32), y),
        "test": ((T[yt] + rng.normal(size=(24, 16))).astype(np.float32), yt),
        "text": T,
    }


class OnlyDLPack:
    """What an array of another library shows."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnlyArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)


class NoDLPack(OnlyArray):
    """Its memory cannot be shared, but copied."""

    def __dlpack__(self, **options):
        raise BufferError("not on this device")

    def __dlpack_device__(self):
        return 2, 0


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["numpy", "torch", "needs grad", "dlpack", "copied", "__array__", "lists", "float64"])
def test_whoever_made_the_arrays(world, kind, caplog):
    torch = pytest.importorskip("torch") if kind in ("torch", "needs grad") else None
    convert = {
        "numpy": lambda a: a,
        "torch": lambda a: torch.tensor(a),
        "needs grad": lambda a: torch.tensor(a, requires_grad=a.dtype.kind == "f"),
        "dlpack": OnlyDLPack,
        "copied": NoDLPack,
        "__array__": OnlyArray,
        "lists": lambda a: a.tolist(),
        "float64": lambda a: a.astype(np.float64) if a.dtype.kind == "f" else a,
    }[kind]
    (X, y), (Xt, yt) = world["pool"], world["test"]
    made = kshot.Features.from_arrays(
        "w", pool=(convert(X), convert(y)), test=(convert(Xt), convert(yt)), text=convert(world["text"])
    )
    assert np.allclose(made.pool.X, unit(X), atol=1e-6)
    assert np.allclose(made.test.X, unit(Xt), atol=1e-6)
    assert np.allclose(made.text["text"], unit(world["text"]), atol=1e-6)
    assert (made.pool.y == y).all()
    assert (made.test.y == yt).all()
    assert "rows are scaled to unit length; their lengths were pool" in caplog.text


def test_what_can_be_neither_shared_nor_copied_says_so(world):
    class Closed:
        def __dlpack__(self, **options):
            raise BufferError("not on this device")

        __dlpack_device__ = NoDLPack.__dlpack_device__

    with pytest.raises(InputError, match="text text cannot be read as an array: not on this device"):
        kshot.Features.from_arrays("w", **(world | {"text": Closed()}))


def test_rows_of_unit_length_are_kept_bit_by_bit_and_others_scaled(world):
    (X, y), yt = world["pool"], world["test"][1][:16]
    half, whole = unit(X).astype(np.float16), np.eye(16, dtype=int)
    made = kshot.Features.from_arrays("w", pool=(half, y), test=(whole, yt), text=world["text"])
    held = made.store.images("w", "arrays", "pool").X
    assert held.dtype == np.float16
    assert np.array_equal(held, half)
    asked = made.store.images("w", "arrays", "test").X
    assert asked.dtype.kind == "f"
    assert np.array_equal(asked, whole)
    text = made.store.text("w", "arrays", "text").prototypes
    assert np.allclose(np.linalg.norm(text, axis=1), 1, atol=1e-6)
    long = kshot.Features.from_arrays("w", pool=(3 * half, y), test=(whole, yt))
    assert np.allclose(np.linalg.norm(long.store.images("w", "arrays", "pool").X, axis=1), 1, atol=1e-3)


def test_arrays_that_their_owner_changes_later_change_nothing(world):
    """Rows of unit length are kept as they are, but not in the caller's memory."""
    world |= {"pool": (unit(world["pool"][0]), world["pool"][1].copy()), "text": unit(world["text"])}
    world["test"] = unit(world["test"][0]), world["test"][1]
    made = kshot.Features.from_arrays("w", **world)
    asked = {"shots": [2], "seeds": 1, "workers": 1, "least_left": 0}
    before = kshot.compare(["clap", "zero_shot"], made, **asked).to_arrow()
    for array in (*world["pool"], world["test"][0], world["text"]):
        array[:] = np.roll(array, 1, axis=0)
    after = kshot.compare(["clap", "zero_shot"], made, **asked).to_arrow()
    assert after["hits"].to_pylist() == before["hits"].to_pylist()


def test_features_of_one_name_are_told_apart(world, tmp_path):
    X, y = world["pool"]
    other = world | {"pool": (X[:, ::-1], y)}
    first, second = (kshot.Features.from_arrays("w", **given) for given in (world, other))
    again = kshot.Features.from_arrays("w", **world)
    first.save(tmp_path / "a")
    kshot.Features.from_arrays("v", **other).save(tmp_path / "b")
    memory = MemoryStore(tmp_path / "c")
    memory.take(Store(tmp_path / "a"), "w", "arrays")
    memory.take(again.store, "w", "arrays")
    memory.take(Store(tmp_path / "b"), "v", "arrays")
    assert memory.held == ["w/arrays", "v/arrays"]
    assert {m.dataset for m in memory.readable()} >= {"w", "v"}
    assert np.array_equal(memory.images("w", "arrays", "pool").X, first.store.images("w", "arrays", "pool").X)
    assert np.array_equal(memory.images("v", "arrays", "pool").X, second.store.images("w", "arrays", "pool").X)
    with pytest.raises(FeatureError, match="two different features are called w/arrays"):
        memory.take(second.store, "w", "arrays")


def test_bfloat16_and_unit_rows_about_which_nothing_is_said(world, caplog):
    torch = pytest.importorskip("torch")
    (X, y), (Xt, yt) = world["pool"], world["test"]
    given = {"test": (unit(Xt), yt), "text": unit(world["text"])}
    kshot.Features.from_arrays("w", pool=(unit(X), y), **given)
    assert not caplog.records
    half = kshot.Features.from_arrays("w", pool=(torch.tensor(X).to(torch.bfloat16), y), **given)
    assert np.allclose(half.pool.X, unit(X), atol=0.01)


@pytest.mark.parametrize("names", [list("dcba"), [10, 7, 3, 1], [True, False]])
def test_labels_are_taken_as_heads_take_them(world, names):
    count = len(names)
    (X, y), (Xt, yt) = (Xy := world["pool"]), world["test"]
    keep, kept = Xy[1] < count, yt < count
    labels, asked, T = np.array(names)[y[keep]], np.array(names)[yt[kept]], world["text"][:count]
    made = kshot.Features.from_arrays("w", pool=(X[keep], labels), test=(Xt[kept], asked), text=T, classes=names)
    head = kshot.ZeroShot().fit(text=T, classes=names)
    assert made.episode(1).score(made.episode(1).fit(kshot.ZeroShot())) == np.mean(head.predict(Xt[kept]) == asked)
    assert made.classes == tuple(map(str, names))


def test_classes_may_name_row_numbers(world):
    made = kshot.Features.from_arrays("w", **world, classes=["ant", "bee", "cat", "dog"])
    assert made.classes == ("ant", "bee", "cat", "dog")
    assert (made.test.y == world["test"][1]).all()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_lengths_whose_squares_no_float_holds(world, scale, caplog):
    (X, y), unscaled = world["pool"], kshot.Features.from_arrays("w", **world)
    caplog.clear()
    made = kshot.Features.from_arrays("w", **(world | {"pool": (X * np.float32(scale), y)}))
    assert np.allclose(made.pool.X, unscaled.pool.X, atol=1e-6)
    lengths = np.linalg.norm(X.astype(np.float64), axis=1) * scale
    assert f"pool {lengths.min():.3g} to {lengths.max():.3g}" in caplog.text


def test_pictures_that_are_in_pool_and_test(world, caplog):
    X, y = world["pool"]
    kshot.Features.from_arrays("w", **(world | {"test": (2 * X[:10], y[:10])}), classes=None)
    assert "10 of 10 rows of test are in pool, too" in caplog.text


def test_saved_and_loaded_they_are_the_same(world, tmp_path):
    ids = ([f"p{n}" for n in range(36)], [f"t{n}" for n in range(24)])
    constants = {"logit_scale": 50.0, "anchor_scale": 7.0}
    tiers = {"photo": world["text"], "other": world["text"][::-1]}
    made = kshot.Features.from_arrays("w", **(world | {"text": tiers}), ids=ids, constants=constants, backbone="mine")
    made.save(tmp_path)
    loaded = kshot.load_features("w", "mine", features=tmp_path)
    assert type(loaded) is kshot.Features
    assert made.store.hashes([("w", "mine")]) == loaded.store.hashes([("w", "mine")])
    assert np.array_equal(made.pool.X, loaded.pool.X)
    assert loaded.stratum.pool_ids == tuple(ids[0])
    first, second = (f.episode(4, 1, "photo").reveal(frozenset({"support"})) for f in (made, loaded))
    assert np.array_equal(first.support.X, second.support.X)
    assert first.constants == second.constants == constants
    loaded.save(tmp_path)
    with pytest.raises(FeatureError, match="holds other features of w/mine"):
        kshot.Features.from_arrays("w", **world, backbone="mine").save(tmp_path)
    bundled = kshot.load_features("tuxpaint", "lite0")
    bundled.save(tmp_path)
    assert {m.dataset for m in Store(tmp_path).manifests()} == {"w", "tuxpaint"}


def test_an_episode_has_as_many_shots_as_were_asked_for(world):
    made = kshot.Features.from_arrays("w", **world)
    support = made.episode(9, 1).reveal(frozenset({"support"})).support
    assert np.bincount(support.y).tolist() == [9] * 4
    for shots in (10, 0, -1):
        with pytest.raises(InputError, match="allowed are 1 to 9, the pool pictures of the smallest class"):
            made.episode(shots)


def unrelated(caplog):
    return [record.message for record in caplog.records if "may not belong together" in record.message]


def test_text_in_another_order_needs_names(world, caplog):
    """Names in the user's order, as Caltech101 has them: sorted rows of text would be other classes' rows."""
    names = ["d", "a", "c", "b"]
    (X, y), (Xt, yt), T = world["pool"], world["test"], world["text"]
    named = {"pool": (X, np.array(names)[y]), "test": (Xt, np.array(names)[yt])}
    with pytest.raises(InputError, match=r"labels are names .*classes=\['d', 'a', …\]"):
        kshot.Features.from_arrays("w", **named, text=T)
    pandas = pytest.importorskip("pandas")
    rows = dict(zip(names, T, strict=True))
    texts = (rows, pandas.DataFrame(T, index=names), {"photo": rows}, {"photo": rows, "b": dict(sorted(rows.items()))})
    for text in texts:
        made = kshot.Features.from_arrays("w", **named, text=text)
        assert made.classes == tuple(names)
        assert all(np.allclose(found, unit(T), atol=1e-6) for found in made.text.values())
    assert made.tiers == ["b", "photo"]
    by_hand = kshot.Features.from_arrays("w", **named, text=T, classes=names)
    assert by_hand.store.hashes([("w", "arrays")]) == kshot.Features.from_arrays("w", **named, text=rows).store.hashes(
        [("w", "arrays")]
    )
    with pytest.raises(InputError, match="text b has no names, but another tier has"):
        kshot.Features.from_arrays("w", **named, text={"photo": rows, "b": T})
    assert not unrelated(caplog)
    kshot.Features.from_arrays("w", **named, text=T[::-1], classes=names)
    assert len(unrelated(caplog)) == 1


def test_prompts_of_each_class_are_averaged(world, caplog):
    prompts = world["text"][:, None] + np.random.default_rng(1).normal(size=(4, 5, 16)).astype(np.float32)
    made = kshot.Features.from_arrays("w", **(world | {"text": prompts}))
    assert np.allclose(made.text["text"], unit(unit(prompts.reshape(20, 16)).reshape(4, 5, 16).mean(axis=1)), atol=1e-6)
    assert "the unit rows of 5 prompts a class are averaged" in caplog.text


def test_one_undivided_pool_is_split_as_the_store_splits_it(world, tmp_path):
    from kshot.data.episode import self_split

    (X, y), ids = world["pool"], [f"p{n}" for n in range(36)]
    made = kshot.Features.from_arrays("w", pool=(X, y), text=world["text"], ids=ids)
    inside = self_split("w", ids, y)
    assert made.stratum.protocol == "self"
    assert made.stratum.pool_ids == tuple(np.array(ids)[inside])
    assert np.array_equal(made.test.y, y[~inside])
    assert np.bincount(made.pool.y).tolist() == [6] * 4
    made.save(tmp_path)
    assert np.array_equal(kshot.load_features("w", "arrays", features=tmp_path).pool.X, made.pool.X)


def test_validation_rows_and_views(world):
    from kshot.types import Views

    (X, y), rng = world["pool"], np.random.default_rng(2)
    views = np.stack([X + 0.1 * rng.normal(size=X.shape).astype(np.float32) for _ in range(3)])
    made = kshot.Features.from_arrays("w", **world, val=(X[:8] + 1, y[:8]), views={"tip": views})
    assert np.allclose(made.stratum.val.X, unit(X[:8] + 1), atol=1e-6)
    with_views = kshot.data.stratum.load_stratum(made.store, "w", "arrays", views=[Views("tip", 3)])
    episode = with_views.episode(2, 0, made.priors["text"])
    shown = episode.reveal(frozenset({"support", "text"}), Views("tip", 3))
    rows = [int(np.flatnonzero((row == made.pool.X).all(axis=1))[0]) for row in shown.support.X]
    assert np.allclose(shown.views, unit(views.reshape(-1, 16)).reshape(views.shape)[:, rows], atol=1e-6)
    for change, says in (
        ({"views": {"mine": views}}, "unknown view recipe 'mine'"),
        ({"views": {"tip": views[:, 1:]}}, r"must have shape \(E, 36, 16\)"),
        ({"val": (X[:8, 1:], y[:8])}, "val has 15 dimensions"),
    ):
        with pytest.raises(InputError, match=says):
            kshot.Features.from_arrays("w", **world, **change)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_hashes_in_memory_are_those_of_the_librarys_files(world, dtype):
    """What identifies features must not depend on who lays out the file."""
    import hashlib

    from safetensors.numpy import save

    X, y = world["pool"]
    made = kshot.Features.from_arrays("w", **(world | {"pool": (unit(X).astype(dtype), y)}))
    ids = np.frombuffer("\n".join(f"pool/{row}" for row in range(36)).encode(), np.uint8)
    content = save({"features": unit(X).astype(dtype), "labels": y.astype(np.int32), "ids": ids})
    assert made.store.manifest("w", "arrays", "pool").sha256 == hashlib.sha256(content).hexdigest()
    text = {"text": unit(world["text"]).astype(dtype)}
    made = kshot.Features.from_arrays("w", **(world | text), constants={"anchor_scale": 7.0})
    content = save({"prototypes": text["text"], "norms": np.full(4, 7, np.float32)})
    assert made.store.manifest("w", "arrays", "text-text").sha256 == hashlib.sha256(content).hexdigest()


def test_a_file_of_rows_is_mapped_and_not_read_whole(world, tmp_path):
    X, y = np.repeat(world["pool"][0], 100, axis=0), np.repeat(world["pool"][1], 100)
    np.save(tmp_path / "unit.npy", unit(X).astype(np.float16))
    np.save(tmp_path / "long.npy", X)
    mapped = np.load(tmp_path / "unit.npy", mmap_mode="r")
    held = kshot.Features.from_arrays("w", **(world | {"pool": (mapped, y)})).store.images("w", "arrays", "pool").X
    assert np.shares_memory(held, mapped)
    long = np.load(tmp_path / "long.npy", mmap_mode="r")
    held = kshot.Features.from_arrays("w", **(world | {"pool": (long, y)})).store.images("w", "arrays", "pool").X
    assert np.allclose(held, unit(X), atol=1e-6)


@pytest.mark.parametrize("value", [4.6052, 10.0, 1.0])
def test_a_logarithm_is_no_logit_scale(world, value):
    X, y, T = *world["pool"], world["text"]
    for door in (
        lambda: kshot.Features.from_arrays("w", **world, constants={"logit_scale": value}),
        lambda: kshot.CLAP().fit(X, y, text=T, constants={"logit_scale": value}),
        lambda: kshot.CLAP(logit_scale=value).fit(X, y, text=T),
        lambda: kshot.Encoder(list, name="mine", logit_scale=value),
    ):
        with pytest.raises(InputError, match="is it the logarithm"):
            door()


def test_a_small_logit_scale_of_an_encoders_manifest_is_meant(world):
    made = kshot.Features.from_arrays("w", **world)
    about = {"classes": made.classes, "logit_scale": 5.0}
    for part in ("pool", "test"):
        stored = made.store.images("w", "arrays", part)
        made.store.write_images("w", "own", part, stored.X, stored.y, stored.ids, **about)
    made.store.write_text("w", "own", "text", made.text["text"], None, **about)
    own = kshot.Features("w", "own", made.store)
    for head in (kshot.CLAP(epochs=1), kshot.FoldGDA()):
        fitted = own.episode(4).fit(head)
        assert fitted.selected_["logit_scale"].value == 5


REAL = {"caltech101": (24.5, 94.2), "ucf101": (68.8, 70.4)}


@pytest.mark.ci
@pytest.mark.parametrize("name", REAL)
def test_real_text_in_its_own_order(name, real, caplog):
    """Zero-shot where text is taken as sorted, against the order that its names give it."""
    with np.load(real / f"{name}_vitb16.npz", allow_pickle=False) as file:
        data = dict(file)
    names = data["classnames"]
    pool, test = ((data[f"{part}_x"], names[data[f"{part}_y"]]) for part in ("train", "test"))
    with pytest.raises(InputError, match="labels are names"):
        kshot.Features.from_arrays(name, pool=pool, test=test, text=data["text"])

    def zero_shot(**how):
        made = kshot.Features.from_arrays(name, pool=pool, test=test, **how)
        return 100 * made.episode(1).score(made.episode(1).fit(kshot.ZeroShot()))

    right = zero_shot(text=dict(zip(names.tolist(), data["text"], strict=True)))
    assert right == pytest.approx(REAL[name][1], abs=0.05)
    assert not unrelated(caplog)
    wrong = zero_shot(text=data["text"], classes=sorted(names.tolist()))
    assert wrong == pytest.approx(REAL[name][0], abs=0.05)
    assert len(unrelated(caplog)) == (name == "caltech101")


def test_mistakes_are_named(world):
    (X, y), (Xt, yt), T = world["pool"], world["test"], world["text"]
    for change, says in (
        ({"pool": (X, y[1:])}, "pool has 36 rows but labels of shape"),
        ({"pool": (X[y < 3], y[y < 3])}, "pool has no row of 1 of 4 classes, the first 3"),
        ({"test": (Xt[:, 1:], yt)}, "test has 15 dimensions, pool has 16"),
        ({"text": {"a": T, "b": T[1:]}}, "rows of text differ"),
        ({"test": (Xt[:, 1:] * 0, yt)}, "test has 15 dimensions, pool has 16"),
        ({"test": (Xt * 0, yt)}, "test has zero vectors in 24 row"),
        ({"test": (Xt, yt + 4)}, "24 labels of test are none of the classes, the first of them 4"),
        ({"test": (Xt[:0], yt[:0])}, "test is empty"),
        ({"pool": (X[:0], y[:0])}, "pool is empty"),
        ({"pool": (X, None)}, "Give one label per row"),
        ({"test": None, "val": (Xt, yt)}, "val needs a test"),
        ({"ids": ["a", "b", "c"]}, "ids must name the pictures of pool, test"),
        ({"text": "a photo"}, r"text text must have two dimensions"),
        ({"classes": list("abc")}, "classes names 3 classes, but text has 4 rows"),
        ({"constants": {"logit_scale": -1.0}}, "logit_scale must be a number above 0, not -1.0"),
        ({"constants": {"logit_scale": 0.0}}, "logit_scale must be a number above 0, not 0.0"),
        ({"constants": {"logit_scale": np.inf}}, "logit_scale must be a number above 0, not inf"),
        ({"constants": {"scale": 1.0}}, "unknown constant 'scale'"),
        ({"pool": ([[1.0], [1.0, 2.0]], [0, 1])}, "cannot be read as an array"),
        ({"ids": (["a"] * 36, list(map(str, range(24))))}, "ids repeat"),
    ):
        with pytest.raises(InputError, match=says):
            kshot.Features.from_arrays("w", **(world | change))
    with pytest.raises(kshot.errors.KshotError, match="cannot be a file name"):
        kshot.Features.from_arrays("../w", **world)
    with pytest.raises(FeatureError, match="pictures of w/arrays are in pool and test"):
        kshot.Features.from_arrays("w", **world, ids=([str(n) for n in range(36)], [str(n) for n in range(24)]))
