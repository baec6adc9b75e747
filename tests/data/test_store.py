import inspect

import numpy as np
import pytest
from safetensors.numpy import load_file

from kshot.data.store import Store, check_images
from kshot.errors import FeatureError, InputError

X = np.eye(4, dtype=np.float16)
y = np.array([0, 1, 1, 0])
IDS = ["a", "ü/1", "c", "d"]
CLASSES = ["cat", "<b>dog</b>"]


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    store.write_images("pets", "tiny", "pool", X, y, IDS, CLASSES, logit_scale=20.0, licence="CC0")
    store.write_text("pets", "tiny", "photo", X[:2].astype(np.float32), np.array([3.0, 4.0]), CLASSES)
    return store


def test_round_trip(store):
    images = store.images("pets", "tiny", "pool")
    assert np.array_equal(images.X, X)
    assert images.X.dtype == np.float16
    assert np.array_equal(images.y, y)
    assert images.ids == tuple(IDS)
    assert images.manifest.classes == tuple(CLASSES)
    assert images.manifest.logit_scale == 20.0
    text = store.text("pets", "tiny", "photo")
    assert np.array_equal(text.norms, [3, 4])
    assert store.tiers("pets", "tiny") == ["photo"]
    assert [m.part for m in store.manifests()] == ["pool", "text-photo"]


def test_reads_are_memory_maps_and_agree_with_the_safetensors_library(store):
    images = store.images("pets", "tiny", "pool")
    owner = images.X
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert isinstance(owner, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        images.X[0, 0] = 1
    assert np.array_equal(load_file(store.path("pets", "tiny", "pool"))["features"], images.X)


def test_a_flipped_bit_names_the_file_and_both_hashes(store):
    path = store.path("pets", "tiny", "pool")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        FeatureError, match=r"pool\.safetensors is damaged: .*sha256 [0-9a-f]{64}, the file has [0-9a-f]{64}"
    ):
        store.images("pets", "tiny", "pool")


@pytest.mark.parametrize("keep", [0, 5, 40, -3])
def test_a_truncated_file_is_damaged(store, keep):
    path = store.path("pets", "tiny", "pool")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FeatureError, match="damaged"):
        store.images("pets", "tiny", "pool")


def test_without_manifest_a_file_does_not_exist(store):
    store.path("pets", "tiny", "pool").with_suffix(".json").unlink()
    with pytest.raises(FeatureError, match="unknown features 'pets/tiny/pool'"):
        store.images("pets", "tiny", "pool")


def test_a_manifest_that_cannot_be_read_says_so(store):
    store.path("pets", "tiny", "pool").with_suffix(".json").write_text('{"format": 1}')
    with pytest.raises(FeatureError, match="is damaged"):
        store.images("pets", "tiny", "pool")
    store.path("pets", "tiny", "pool").with_suffix(".json").write_text('{"format": 99}')
    with pytest.raises(FeatureError, match="format 99"):
        store.images("pets", "tiny", "pool")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.full((4, 4), np.nan, np.float16)}, "NaN"),
        ({"y": np.array([0, 1, 2, 0])}, "labels span 0..2; allowed is 0..1"),
        ({"ids": ["a", "a", "b", "c"]}, "ids repeat"),
        ({"ids": ["a", "b"]}, "2 ids"),
        ({"ids": ["a", "b", "c", "d\ne"]}, "line break"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, changes, message):
    given = {"X": X, "y": y, "ids": IDS} | changes
    with pytest.raises(InputError, match=message):
        Store(tmp_path / "new").write_images("pets", "tiny", "pool", given["X"], given["y"], given["ids"], CLASSES)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("labels", [np.array(["cat", "dog", "cat"]), np.array([0.0, 1.0, 0.0])])
def test_labels_that_are_no_numbers_of_classes_are_one_sentence(labels):
    with pytest.raises(InputError, match=r"0\.\.1 that count the classes.*classes\.index"):
        inspect.unwrap(check_images)(np.eye(3), labels, ["a", "b", "c"], ["cat", "dog"])


def test_rewriting_removes_the_manifest_first(store, monkeypatch):
    """A crash while rewriting must not leave the old manifest vouching for a new file."""

    def crash(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("kshot.data.store.write_text", crash)
    with pytest.raises(KeyboardInterrupt):
        store.write_images("pets", "tiny", "pool", 1 - X, y, IDS, CLASSES)
    assert not store.has("pets", "tiny", "pool")


def test_writing_the_same_again_never_hides_it(store, monkeypatch):
    """Another process may read while the same features are written once more."""
    seen = []
    monkeypatch.setattr(
        "kshot.data.store.write_text", lambda path, text: seen.append(store.images("pets", "tiny", "pool").ids)
    )
    store.write_images("pets", "tiny", "pool", X, y, IDS, CLASSES)
    assert seen == [tuple(IDS)]
