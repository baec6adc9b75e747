"""`kshot encode` as a user starts it, against local stand-ins for the hub."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from kshot.data.store import Store
from kshot.encode.encoding import check_reference, encode_pictures
from kshot.encode.openclip import OpenClipEncoder
from kshot.encode.sources import find_source
from kshot.encode.targets import Encoding
from kshot.errors import FeatureError
from picture_sets import CLASSES, picture, write_shards

TINY = ["--backbone", "ViT-B-32", "--batch", "5"]


def start(*arguments):
    command = [sys.executable, "-m", "kshot", "encode", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def kshot_encode(*arguments):
    process = start(*arguments)
    out, err = process.communicate(timeout=900)
    return process.returncode, out, err


def hashes(root) -> dict[str, str]:
    return {f"{m.dataset}/{m.part}": m.sha256 for m in Store(root).manifests()}


@pytest.fixture(scope="module")
def uninterrupted(tiny_clip, tmp_path_factory):
    """Shards and the features that one quiet run over HTTP-free disk gives."""
    root = tmp_path_factory.mktemp("uninterrupted")
    write_shards(root / "wds", {"train": 4, "test": 2})
    code, out, err = kshot_encode(
        root / "wds",
        *TINY,
        "--weights",
        tiny_clip,
        "--dataset",
        "Pets",
        *("--tier", "photo", "--tier", "dataset", "--tier", "ensemble"),
        "--features",
        root / "features",
    )
    assert code == 0, err
    assert "72 pictures of Pets" in out
    assert "per second" in out
    return root


def test_parts_text_and_facts(uninterrupted, tiny_clip):
    store = Store(uninterrupted / "features")
    pool, test = (store.images("Pets", "ViT-B-32", part) for part in ("pool", "test"))
    assert (pool.X.shape, test.X.shape) == ((48, 24), (24, 24))
    assert pool.X.dtype == np.float16
    assert pool.ids[13] == "train/1/s0000013"
    assert list(pool.y[:4]) == [0, 1, 2, 0]
    assert pool.manifest.classes == CLASSES
    assert pool.manifest.logit_scale == pytest.approx(1 / 0.07, rel=1e-5)
    assert pool.manifest.encoder["activation"] == "QuickGELU"
    assert store.tiers("Pets", "ViT-B-32") == ["dataset", "ensemble", "photo"]
    assert store.text("Pets", "ViT-B-32", "photo").norms is not None
    assert not list((uninterrupted / "features" / ".encoding").rglob("*.safetensors"))
    assert not list((uninterrupted / "features").rglob(".tmp-*"))


def test_rows_are_what_the_model_gives_one_by_one(uninterrupted, tiny_clip):
    encoder = OpenClipEncoder("ViT-B-32", tiny_clip)
    source = find_source(str(uninterrupted / "wds"))
    alone = [
        encoder.encode_images(encoder.preprocessing(p.load())[None])[0]
        for shard in source.shards()[:2]
        for p in source.pictures(shard)
    ]
    stored = Store(uninterrupted / "features").images("Pets", "ViT-B-32", "pool").X[: len(alone)]
    np.testing.assert_allclose(np.stack(alone), stored, atol=1e-3)


@pytest.mark.slow
def test_killed_over_a_dropping_connection_and_resumed_gives_the_same_hash(uninterrupted, tiny_clip, serve, tmp_path):
    gate = threading.Event()
    server = serve(uninterrupted / "wds", gate)
    features = tmp_path / "features"
    arguments = (
        server.url,
        *TINY,
        "--weights",
        tiny_clip,
        "--dataset",
        "Pets",
        *("--tier", "photo", "--tier", "dataset", "--tier", "ensemble"),
        "--features",
        features,
    )
    process = start(*arguments)
    while not any(path.endswith("train/2.tar") for path, _ in server.requests):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    gate.set()
    assert len(list((features / ".encoding").rglob("0*.safetensors"))) == 2
    assert hashes(features) == {}
    before = len(server.requests)
    code, _, err = kshot_encode(*arguments)
    assert code == 0, err
    again = {path for path, _ in server.requests[before:]}
    assert not {"/train/0.tar", "/train/1.tar"} & again
    assert hashes(features) == hashes(uninterrupted / "features")
    assert any(wanted for _, wanted in server.requests)


def test_a_second_run_encodes_nothing_and_another_encoder_is_refused(uninterrupted, tiny_clip, tmp_path):
    store = Store(uninterrupted / "features")
    source = find_source(str(uninterrupted / "wds"))
    job = Encoding("Pets", "ViT-B-32", source, OpenClipEncoder("ViT-B-32-quickgelu", tiny_clip), batch=5)
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("pool.*")}
    check_reference(job, store)
    encode_pictures([job], store, lambda count: None)
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("pool.*")} == before
    changed = tmp_path / "changed"
    shutil.copytree(tiny_clip, changed)
    config = json.loads((changed / "open_clip_config.json").read_text())
    config["model_cfg"]["quick_gelu"] = False
    (changed / "open_clip_config.json").write_text(json.dumps(config))
    other = replace(job, encoder=OpenClipEncoder("ViT-B-32-quickgelu", changed))
    with pytest.raises(FeatureError, match="does not encode as it did before"):
        check_reference(other, store)
    with pytest.raises(FeatureError, match=r"holds pool of another encoding \(differs in activation\)"):
        encode_pictures([other], store, lambda count: None)


@pytest.mark.slow
def test_the_studys_datasets_by_one_pattern(tiny_clip, serve, tmp_path):
    """The documented command, with a loopback server in place of the hub."""
    hub = tmp_path / "hub"
    for name, splits in (("vtab-pets", {"train": 1, "test": 1}), ("sun397", {"test": 1})):
        write_shards(hub / f"wds_{name}" / "resolve" / "main", splits)
    server = serve(hub)
    features = tmp_path / "features"
    code, out, err = kshot_encode(
        f"{server.url}/wds_{{wds}}/resolve/main",
        "--dataset",
        "Pets",
        "--dataset",
        "SUN397",
        *TINY,
        "--weights",
        tiny_clip,
        *("--tier", "photo", "--tier", "dataset", "--tier", "ensemble"),
        "--device",
        "cpu",
        "--threads",
        "3",
        "--features",
        features,
    )
    assert code == 0, err
    assert {"Pets/pool", "Pets/test", "SUN397/all"} <= set(hashes(features))
    assert "next: kshot features check" in out


@pytest.mark.slow
def test_views_cupl_and_a_tier_of_ones_own(tiny_clip, tmp_path):
    for label, name in enumerate(CLASSES):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(3):
            (tmp_path / "pictures" / name / f"{number}.png").write_bytes(picture(label, number))
    cupl = tmp_path / "cupl.json"
    cupl.write_text(json.dumps({name.upper(): ["It is bright."] for name in CLASSES}))
    code, _, err = kshot_encode(
        tmp_path / "pictures",
        *TINY,
        "--weights",
        tiny_clip,
        "--tier",
        "photo",
        "--sentences",
        f"cupl={cupl}",
        "--sentences",
        f"mine={cupl}",
        "--views",
        "2",
        "--view-recipe",
        "clap",
        "--features",
        tmp_path / "features",
    )
    assert code == 0, err
    store = Store(tmp_path / "features")
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
        (["--tier", "cupl"], ["tier cupl needs its sentences: --sentences cupl=FILE.json"]),
        (["--tier", "dataset", "--dataset", "mine"], ["no templates are known for tier dataset of"]),
        (["--sentences", "cupl"], ["--sentences cupl: write TIER=FILE.json"]),
        (["--sentences", "cupl=absent.json"], ["absent.json"]),
        (["--view-recipe", "tpi"], ["unknown view recipe 'tpi'", "Did you mean tip"]),
        (["--dataset", "a", "--dataset", "b"], ["2 datasets for one source; put {wds}"]),
        (["--dataset", "../up"], ["dataset '../up' cannot be a file name"]),
        (["--device", "gpu"], ["unknown device 'gpu'", "auto, cpu, cuda"]),
        (["--device", "cuda:99"], ["cannot use the device 'cuda:99'", "--device cpu"]),
    ],
)
def test_mistakes_are_told_before_anything_is_encoded(tiny_clip, tmp_path, arguments, words):
    write_shards(tmp_path / "wds", {"test": 1})
    code, _, err = kshot_encode(
        tmp_path / "wds", *TINY, "--weights", tiny_clip, "--features", tmp_path / "features", *arguments
    )
    assert code == 2, err
    assert err.startswith("kshot: ")
    assert len(err.strip().splitlines()) == 1
    for word in words:
        assert word in err
    assert not (tmp_path / "features").exists()


def test_a_folder_whose_name_cannot_be_a_datasets(tiny_clip, tmp_path):
    write_shards(tmp_path / "my pics", {"test": 1})
    code, _, err = kshot_encode(tmp_path / "my pics", *TINY, "--weights", tiny_clip)
    assert code == 2
    assert "'my pics' cannot be a file name" in err
    assert "--dataset NAME" in err


def test_a_missing_extra_prints_the_pip_command():
    """In a child where open_clip cannot be found."""
    program = (
        "import sys; sys.modules['open_clip'] = None\n"
        "from kshot.encode.encoders import load_encoder\n"
        "from kshot.errors import KshotError\n"
        "try: load_encoder('ViT-B-16')\n"
        "except KshotError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = "this needs open_clip, which is not installed. Type: pip install 'kshot[encode]'"
    assert done.stdout.strip() == said, done.stderr
