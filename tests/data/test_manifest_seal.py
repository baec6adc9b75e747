"""A manifest that was changed after it was written is noticed, byte by byte."""

import json
import shutil

import pytest

from kshot.data.store import BUNDLED, Store, read_manifest
from kshot.data.stratum import load_stratum
from kshot.errors import FeatureError, KshotError
from small_store import write_stratum


@pytest.fixture
def manifest(tmp_path):
    store = write_stratum(Store(tmp_path), logit_scale=100.0)
    return store.path("d", "b", "pool").with_suffix(".json")


def test_no_single_changed_bit_passes_for_something_else(manifest):
    good, before = manifest.read_bytes(), read_manifest(manifest)
    for place in range(len(good)):
        changed = bytearray(good)
        changed[place] ^= 1 << place % 7
        manifest.write_bytes(bytes(changed))
        try:
            after = read_manifest(manifest)
        except KshotError:
            continue
        assert after == before, bytes(changed)


def test_a_changed_logit_scale_stops_the_stratum(manifest):
    content = json.loads(manifest.read_text())
    content["logit_scale"] = 1.0
    manifest.write_text(json.dumps(content))
    with pytest.raises(FeatureError, match=r"pool.json is damaged"):
        load_stratum(Store(manifest.parents[2]), "d", "b")


def test_a_manifest_without_its_seal_is_damaged(manifest):
    content = json.loads(manifest.read_text())
    del content["seal"]
    manifest.write_text(json.dumps(content))
    with pytest.raises(FeatureError, match="damaged"):
        read_manifest(manifest)


def test_a_manifest_in_the_place_of_another_is_damaged(manifest):
    """Two encoders of one size: whole, sealed, and of other pictures than the pool beside it."""
    store = Store(manifest.parents[2])
    write_stratum(store, "d", "other", logit_scale=100.0)
    for suffix in (".json", ".safetensors"):
        shutil.copy(store.path("d", "other", "test").with_suffix(suffix), manifest.with_name(f"test{suffix}"))
    with pytest.raises(FeatureError, match="it is the manifest of d/other/test"):
        load_stratum(store, "d", "b")


def test_bundled_manifests_are_sealed():
    for path in BUNDLED.glob("*/*/*.json"):
        assert json.loads(path.read_text())["seal"] == read_manifest(path).seal
