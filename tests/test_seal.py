"""One changed byte in a head, a cached picture or a kept shard is noticed, wherever it stands."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from colours import ColourEncoder
from kshot.data.store import Store
from kshot.encode.encoding import encode_pictures
from kshot.encode.sources import find_source
from kshot.encode.targets import Encoding
from kshot.errors import FeatureError, InputError
from kshot.files import read_about, seal_tensors, unseal_tensors
from kshot.pictures.encoded import encode_files
from kshot.pictures.fit import fit_folder
from kshot.pictures.head import PictureHead
from picture_sets import write_pictures


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    return write_pictures(tmp_path / "set", 4)


def flipped(path: Path, place: int, mask: int = 0x10) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= mask
    path.write_bytes(bytes(content))


def test_a_sealed_file_is_an_ordinary_one_that_notices_every_byte():
    tensors = {"a": np.arange(5, dtype=np.float32), "b": np.zeros((2, 2), np.int64)}
    content = seal_tensors(tensors, {"name": 'a class called "seal": "', "seal_of": {"x": 1}})
    np.testing.assert_array_equal(load(content)["a"], tensors["a"])
    np.testing.assert_array_equal(unseal_tensors(content)["b"], tensors["b"])
    assert read_about(content)["name"] == 'a class called "seal": "'
    for place in range(len(content)):
        for mask in (1, 0x80):
            damaged = bytearray(content)
            damaged[place] ^= mask
            with pytest.raises(ValueError, match="changed after it was written"):
                unseal_tensors(bytes(damaged))


@pytest.mark.parametrize(("name", "value"), [("temperature", "NaN"), ("temperature", "0.0"), ("threshold", "NaN")])
def test_a_head_whose_numbers_answer_nothing_is_refused_though_sealed(folder, tmp_path, name, value):
    head = fit_folder(folder, encoder=ColourEncoder()).head
    head.save(tmp_path / "head")
    content = (tmp_path / "head").read_bytes()
    about = read_about(content)
    about["provenance"]["about"][name] = json.loads(value)
    (tmp_path / "head").write_bytes(seal_tensors(unseal_tensors(content), about))
    with pytest.raises(InputError, match=f"the head's {name} is"):
        PictureHead.load(tmp_path / "head")


def test_damaged_or_exchanged_cache_entries_are_encoded_again(folder, tmp_path):
    files = sorted(folder.rglob("*.png"))
    whole = [one.feature for one in encode_files(ColourEncoder(), files)]
    entries = sorted((tmp_path / "cache").rglob("*.safetensors"))
    rng = np.random.default_rng(0)
    for _ in range(5):
        for entry in entries:
            flipped(entry, int(rng.integers(entry.stat().st_size)))
        np.testing.assert_array_equal(whole, [one.feature for one in encode_files(ColourEncoder(), files)])
    entries[0].write_bytes(entries[1].read_bytes())
    np.testing.assert_array_equal(whole, [one.feature for one in encode_files(ColourEncoder(), files)])


def test_a_kept_shard_with_another_label_is_encoded_again(folder, tmp_path, monkeypatch):
    """As from a killed run: all shards are there, and their labels were changed in a valid way."""
    job = Encoding("set", "four", find_source(str(folder)), ColourEncoder(), threads=1)
    monkeypatch.setattr("kshot.encode.targets.shutil.rmtree", lambda *args, **kwargs: None)
    [manifest] = encode_pictures([job], Store(tmp_path / "whole"))
    encode_pictures([job], Store(tmp_path / "features"))
    part = Store(tmp_path / "features").path("set", "four", "all")
    [shard] = (tmp_path / "features" / ".encoding").rglob("*.safetensors")
    tensors = load(shard.read_bytes())
    tensors["labels"][0] += 1
    shard.write_bytes(save(tensors))
    part.unlink()
    part.with_suffix(".json").unlink()
    [again] = encode_pictures([job], Store(tmp_path / "features"))
    assert again.sha256 == manifest.sha256


def test_damaged_reference_vectors_are_told(tmp_path):
    from kshot.encode.reference_vectors import compare_with_reference

    (tmp_path / "kept").write_bytes(b"\xff" * 40)
    with pytest.raises(FeatureError, match="is damaged"):
        compare_with_reference(ColourEncoder(), "four", [tmp_path / "kept"])
