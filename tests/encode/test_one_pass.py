"""Two backbones from a loopback hub: every shard is fetched once, and kills at random change nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from kshot.data.store import Store
from kshot.encode.encoding import encode_pictures
from kshot.encode.openclip import OpenClipEncoder
from kshot.encode.origins import find_origins
from kshot.encode.sources import find_source
from kshot.encode.targets import Encoding
from kshot.encode.tiers import encode_tiers, tier_prompts
from picture_sets import write_shards

TWO = ("ViT-B-32", "ViT-B-16")
MAIN = "wds_vtab-pets/resolve/main"
TARS = {f"/{MAIN}/{tar}.tar" for tar in ("train/0", "train/1", "train/2", "train/3", "test/0", "test/1")}


@pytest.fixture(scope="module")
def other_clip(tiny_clip, tmp_path_factory):
    """A second encoder with other weights."""
    import json

    import torch
    from safetensors.torch import load_file, save_file

    folder = tmp_path_factory.mktemp("other_clip")
    (folder / "open_clip_config.json").write_text(
        json.dumps(json.loads((tiny_clip / "open_clip_config.json").read_text()))
    )
    torch.manual_seed(1)
    state = load_file(tiny_clip / "open_clip_model.safetensors")
    moved = {name: v + 0.02 * torch.randn_like(v) if v.is_floating_point() else v for name, v in state.items()}
    save_file(moved, folder / "open_clip_model.safetensors")
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    write_shards(root / MAIN, {"train": 4, "test": 2})
    return root


def command(backbones, folders, features, *more):
    weights = [f"--weights={name}={folder}" for name, folder in zip(backbones, folders, strict=True)]
    chosen = [f"--backbone={name}" for name in backbones]
    words = ["--dataset", "Pets", *chosen, *weights, "--batch", "5", "--tier", "photo", "--features", str(features)]
    return [sys.executable, "-m", "kshot", "encode", *words, *more]


def run(words, url):
    environment = os.environ | {"KSHOT_HUB": f"{url}/wds_{{wds}}/resolve/main", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(words, url):
    process = run(words, url)
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    return out


def hashes(features):
    return {f"{m.backbone}/{m.part}": m.sha256 for m in Store(features).manifests()}


def fetched(server):
    """How often each shard was asked for from its beginning; a broken connection is continued by a range."""
    return Counter(path for path, wanted in server.requests if path.endswith(".tar") and wanted is None)


def encode_here(name, folder, where, features, keep=None):
    """The same in this process, by one backbone."""
    (origin,) = find_origins(where, ["Pets"])
    source = origin.open(keep)
    encoder = OpenClipEncoder(name, folder)
    job = Encoding("Pets", name, source, encoder, batch=5)
    encode_pictures([job], Store(features), lambda count: None)
    encode_tiers(job, Store(features), tier_prompts(source, None, ["photo"], {}))


@pytest.fixture(scope="module")
def one_by_one(tiny_clip, other_clip, hub, tmp_path_factory):
    """Each backbone alone, from the disk."""
    features = tmp_path_factory.mktemp("one-by-one")
    for name, folder in zip(TWO, (tiny_clip, other_clip), strict=True):
        encode_here(name, folder, str(hub / MAIN), features)
    return hashes(features)


def test_two_backbones_fetch_every_shard_once(tiny_clip, other_clip, hub, one_by_one, serve, tmp_path):
    server = serve(hub)
    finished(command(TWO, (tiny_clip, other_clip), tmp_path / "features", "--views", "2"), server.url)
    assert fetched(server) == dict.fromkeys(TARS, 1), "views and backbones share one fetch"
    found = hashes(tmp_path / "features")
    assert {name: digest for name, digest in found.items() if "-tip-" not in name} == one_by_one
    assert sum("-tip-" in name for name in found) == 4


def test_kept_shards_are_a_source_and_are_not_fetched_again(tiny_clip, hub, one_by_one, serve, tmp_path):
    server, kept = serve(hub), tmp_path / "kept"
    for features in ("features", "again"):
        encode_here(TWO[0], tiny_clip, f"{server.url}/wds_{{wds}}/resolve/main", tmp_path / features, kept)
        assert fetched(server) == dict.fromkeys(TARS, 1)
        alone = {name: digest for name, digest in one_by_one.items() if name.startswith(TWO[0] + "/")}
        assert hashes(tmp_path / features) == alone
    for tar in ("train/0.tar", "test/1.tar"):
        assert (kept / "Pets" / tar).read_bytes() == (hub / MAIN / tar).read_bytes()
    assert find_source(str(kept / "Pets")).shards() == find_source(str(hub / MAIN)).shards()


@pytest.mark.slow
def test_killed_at_random_it_resumes_to_the_same_hashes(tiny_clip, other_clip, hub, one_by_one, serve, tmp_path):
    server, features = serve(hub), tmp_path / "features"
    chance = random.Random(16)
    words = command(TWO, (tiny_clip, other_clip), features)
    for kill in range(3):
        process = run(words, server.url)
        while sum(fetched(server).values()) <= 2 * kill and process.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.3))
        assert process.poll() is None, "it was done before the kill"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finished(words, server.url)
    assert hashes(features) == one_by_one
    # A shard comes again only if the kill found it unfinished: at most one for each kill.
    assert sum(fetched(server).values()) <= len(TARS) + 3
    assert not list((features / ".encoding").rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (["tiny"], "write BACKBONE=PATH with one of the backbones ViT-B-32, ViT-B-16"),
        (["RN50=tiny"], "write BACKBONE=PATH with one of the backbones ViT-B-32, ViT-B-16"),
        (["ViT-B-32=absent"], "there is no checkpoint at absent"),
    ],
)
def test_weights_that_are_nobodys(hub, tmp_path, weights, says):
    words = [sys.executable, "-m", "kshot", "encode", str(hub / MAIN)]
    words += [f"--backbone={name}" for name in TWO] + [f"--weights={text}" for text in weights]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
