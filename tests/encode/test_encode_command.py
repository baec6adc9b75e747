"""`kshot encode` as a user starts it: one pass for two backbones, kills, mistakes; a loopback server is the hub."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from folders import assert_refused
from kshot.data.store import Store
from kshot.encode.encoding import encode_pictures
from kshot.encode.openclip import load_open_clip
from kshot.encode.prompts import encode_tiers, tier_prompts
from kshot.encode.sources import find_origins, find_source
from kshot.encode.targets import Encoding
from picture_sets import CLASSES, write_clip, write_pictures, write_shards

TWO = ("ViT-B-32", "ViT-B-16")
ADDRESS = "datasets/clip-benchmark/wds_vtab-pets/resolve/main"
TARS = {f"/{ADDRESS}/{tar}.tar" for tar in ("train/0", "train/1", "train/2", "train/3", "test/0", "test/1")}


def start(*arguments):
    words = [sys.executable, "-m", "kshot", "encode", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kshot_encode(*arguments):
    process = start(*arguments)
    out, err = process.communicate(timeout=900)
    return process.returncode, out, err


def two_backbones(folders, features, *more):
    weights = [f"--weights={name}={folder}" for name, folder in zip(TWO, folders, strict=True)]
    chosen = [f"--backbone={name}" for name in TWO]
    return ["--dataset", "Pets", *chosen, *weights, "--batch", "5", "--tier", "photo", "--features", features, *more]


def hashes(features):
    return {f"{m.backbone}/{m.part}": m.sha256 for m in Store(features).manifests()}


def fetched(server):
    """How often each shard was fetched."""
    return Counter(path for path, _ in server.requests if path.endswith(".tar"))


@pytest.fixture(scope="module")
def other_clip(tmp_path_factory):
    """A second encoder with other weights."""
    return write_clip(tmp_path_factory.mktemp("other_clip"), 1)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    write_shards(root / ADDRESS, {"train": 4, "test": 2})
    return root


def encode_here(name, folder, where, features, keep=None):
    """By one backbone, in this process."""
    (origin,) = find_origins(where, ["Pets"])
    source = origin.open(keep)
    job = Encoding("Pets", name, source, load_open_clip(name, folder), batch=5)
    encode_pictures([job], Store(features))
    encode_tiers(job, Store(features), tier_prompts("shades", source, None, ["photo"], {}))
    return job


@pytest.fixture(scope="module")
def one_by_one(tiny_clip, other_clip, hub, tmp_path_factory):
    """Each backbone alone, from the disk, without an interruption."""
    features = tmp_path_factory.mktemp("one-by-one")
    jobs = [
        encode_here(name, folder, str(hub / ADDRESS), features)
        for name, folder in zip(TWO, (tiny_clip, other_clip), strict=True)
    ]
    return features, jobs


def test_parts_text_and_facts(one_by_one, hub):
    features, (job, _) = one_by_one
    store = Store(features)
    pool, test = (store.images("Pets", "ViT-B-32", part) for part in ("pool", "test"))
    assert (pool.X.shape, test.X.shape) == ((48, 24), (24, 24))
    assert pool.X.dtype == np.float16
    assert pool.ids[13] == "train/1/s0000013"
    assert list(pool.y[:4]) == [0, 1, 2, 0]
    assert pool.manifest.classes == CLASSES
    assert (pool.manifest.encoder, pool.manifest.logit_scale) == (job.encoder.facts(), job.encoder.logit_scale)
    assert store.text("Pets", "ViT-B-32", "photo").norms is not None
    assert not list((features / ".encoding").rglob("*.safetensors"))
    assert not list(features.rglob(".tmp-*"))
    source, encoder = find_source(str(hub / ADDRESS)), job.encoder
    alone = [
        encoder.encode_images(encoder.preprocessing(p.load())[None])[0]
        for shard in source.shards()[:2]
        for p in source.pictures(shard)
    ]
    np.testing.assert_allclose(np.stack(alone), pool.X[: len(alone)], atol=1e-3)


def test_two_backbones_fetch_every_shard_once(tiny_clip, other_clip, hub, one_by_one, serve, tmp_path, monkeypatch):
    server = serve(hub)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    code, out, err = kshot_encode(*two_backbones((tiny_clip, other_clip), tmp_path / "features", "--views", "2"))
    assert code == 0, err
    assert "per second" in out
    assert fetched(server) == dict.fromkeys(TARS, 1), "views and backbones share one fetch"
    assert not list((tmp_path / "hub-cache").rglob("*.tar")), "shards are dropped"
    found = hashes(tmp_path / "features")
    assert {name: digest for name, digest in found.items() if "-tip-" not in name} == hashes(one_by_one[0])
    assert sum("-tip-" in name for name in found) == 4


def test_kept_shards_are_a_source_and_are_not_fetched_again(tiny_clip, hub, one_by_one, serve, tmp_path):
    server, kept = serve(hub), tmp_path / "kept"
    for features in ("features", "again"):
        encode_here(TWO[0], tiny_clip, f"{server.url}/{ADDRESS}", tmp_path / features, kept)
        assert fetched(server) == dict.fromkeys(TARS, 1)
        alone = {name: digest for name, digest in hashes(one_by_one[0]).items() if name.startswith(TWO[0] + "/")}
        assert hashes(tmp_path / features) == alone
    for tar in ("train/0.tar", "test/1.tar"):
        assert (kept / "Pets" / tar).read_bytes() == (hub / ADDRESS / tar).read_bytes()
    assert find_source(str(kept / "Pets")).shards() == find_source(str(hub / ADDRESS)).shards()


@pytest.mark.slow
def test_killed_at_random_it_resumes_to_the_same_hashes(
    tiny_clip, other_clip, hub, one_by_one, serve, tmp_path, monkeypatch
):
    server, features = serve(hub), tmp_path / "features"
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    chance = random.Random(16)
    words = two_backbones((tiny_clip, other_clip), features)
    for kill in range(3):
        process = start(*words)
        while sum(fetched(server).values()) <= 2 * kill and process.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.3))
        assert process.poll() is None, "it was done before the kill"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    code, _, err = kshot_encode(*words)
    assert code == 0, err
    assert hashes(features) == hashes(one_by_one[0])
    # A shard comes again only if the kill found it unfinished: at most one for each kill.
    assert sum(fetched(server).values()) <= len(TARS) + 3
    assert not list((features / ".encoding").rglob("*.safetensors"))


@pytest.mark.slow
def test_views_cupl_and_a_tier_of_ones_own(tiny_clip, tmp_path):
    write_pictures(tmp_path / "pictures", 3)
    cupl, features = tmp_path / "cupl.json", tmp_path / "features"
    cupl.write_text(json.dumps({name.upper(): ["It is bright."] for name in CLASSES}))
    options = ["--backbone", "ViT-B-32", "--weights", tiny_clip, "--tier", "photo", "--features", features]
    options += ["--sentences", f"cupl={cupl}", "--sentences", f"mine={cupl}", "--views", "2", "--view-recipe", "clap"]
    code, _, err = kshot_encode(tmp_path / "pictures", *options)
    assert code == 0, err
    store = Store(features)
    assert store.tiers("pictures", "ViT-B-32") == ["cupl", "mine", "photo"]
    plain, *views = (store.images("pictures", "ViT-B-32", p) for p in ("all", "all-clap-view00", "all-clap-view01"))
    for view in views:
        assert view.ids == plain.ids
        assert view.manifest.encoder["view_least_area"] == 0.08
        assert not np.array_equal(view.X, plain.X)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tier", "enssemble"], ["unknown tier 'enssemble'", "Did you mean ensemble"]),
        (["--tier", "cupl"], ["no sentences about the classes", "--sentences cupl=FILE.json"]),
        (["--tier", "dataset", "--dataset", "mine"], ["no templates are known for tier dataset of"]),
        (["--sentences", "cupl"], ["--sentences cupl: write TIER=FILE.json"]),
        (["--sentences", "cupl=absent.json"], ["absent.json"]),
        (["--view-recipe", "tpi"], ["unknown view recipe 'tpi'", "Did you mean tip"]),
        (["--dataset", "a", "--dataset", "b"], ["2 datasets for one source; put {wds}"]),
        (["--dataset", "../up"], ["dataset '../up' cannot be a file name"]),
        (["--device", "gpu"], ["unknown device 'gpu'", "auto, cpu, cuda"]),
        (["--device", "cuda:99"], ["cannot use the device 'cuda:99'", "--device cpu"]),
        (["--weights", "absent"], ["there is no checkpoint at absent"]),
        (["--backbone", "ViT-B-16", "--weights", "tiny"], ["write BACKBONE=PATH with one of the backbones ViT-B-32"]),
        (["--backbone", "ViT-B-16", "--weights", "RN50=tiny"], ["write BACKBONE=PATH with one of the backbones"]),
    ],
)
def test_mistakes_are_told_before_anything_is_encoded(tmp_path, kshot, arguments, words):
    write_shards(tmp_path / "wds", {"test": 1})
    assert_refused(kshot("encode", "wds", "--backbone", "ViT-B-32", *arguments), *words)
    assert not (tmp_path / "features").exists()


def test_a_folder_whose_name_cannot_be_a_datasets(tmp_path):
    from kshot.errors import InputError

    write_shards(tmp_path / "my pics", {"test": 1})
    with pytest.raises(InputError, match=r"'my pics' cannot be a file name.*--dataset NAME"):
        find_origins(str(tmp_path / "my pics"), [])
