"""Faults of hub, network and disk: each ends in another attempt or in one sentence, and the features are the same."""

import errno
import random
from pathlib import Path

import pytest

from colours import ColourEncoder
from kshot.data.store import Store
from kshot.encode.encoding import encode_pictures
from kshot.encode.sources import find_source
from kshot.encode.targets import Encoding
from kshot.errors import KshotError
from picture_sets import write_shards

ADDRESS = "datasets/clip-benchmark/wds_it/resolve/main"


@pytest.fixture
def hub(tmp_path):
    write_shards(tmp_path / "hub" / ADDRESS, {"train": 2, "test": 1}, per_shard=6)
    return tmp_path / "hub"


def encode(where, features, keep=None):
    job = Encoding("set", "colours", find_source(where, keep=keep), ColourEncoder(), batch=4, threads=1)
    encode_pictures([job], Store(features))
    return {(m.part, m.rows): m.sha256 for m in Store(features).manifests()}


FAULTS = (
    [429, 503],
    [503, 503, 500],
    ["redirect", 429, "redirect"],
    ["other bytes"],
    [random.Random(5).random()],
    [0.3, "other bytes", 503],
)


@pytest.mark.parametrize(("faults", "kept"), [*((own, False) for own in FAULTS), (FAULTS[-1], True)], ids=str)
def test_faults_that_pass_leave_no_trace(hub, serve, tmp_path, faults, kept):
    server = serve(hub, faults=list(faults))
    keep = tmp_path / "kept" if kept else None
    assert encode(f"{server.url}/{ADDRESS}", tmp_path / "features", keep) == encode(
        str(hub / ADDRESS), tmp_path / "own"
    )
    assert not server.faults, "every fault was met"


def test_retry_after_is_obeyed(hub, serve, tmp_path, monkeypatch):
    slept = []
    monkeypatch.setattr("kshot.encode.hub.time.sleep", slept.append)
    encode(f"{serve(hub, faults=[503], wait='7').url}/{ADDRESS}", tmp_path / "features")
    assert slept == [7.0]


def test_a_hub_that_stays_down_is_one_sentence_and_the_same_command_goes_on(hub, serve, tmp_path):
    server = serve(hub, faults=[503] * 50)
    with pytest.raises(KshotError, match=r"cannot fetch train/0.tar of clip-benchmark/wds_it: .*503.* run the same"):
        encode(f"{server.url}/{ADDRESS}", tmp_path / "features")
    server.faults.clear()
    assert encode(f"{server.url}/{ADDRESS}", tmp_path / "features") == encode(str(hub / ADDRESS), tmp_path / "own")


def test_a_shard_that_is_cut_on_the_hub_itself_is_one_sentence(hub, serve, tmp_path):
    shard = hub / ADDRESS / "train" / "1.tar"
    shard.write_bytes(shard.read_bytes()[:3000])
    with pytest.raises(KshotError, match=r"train/1\.tar is not a readable tar archive|picture without class"):
        encode(f"{serve(hub).url}/{ADDRESS}", tmp_path / "features")


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that is full for files of this suffix, after so many of them, until it is given space."""
    state = {"suffix": "", "left": 0}
    real = Path.replace

    def replace(self, target):
        if str(target).endswith(state["suffix"]) and state["suffix"]:
            if state["left"] == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            state["left"] -= 1
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    return state


@pytest.mark.parametrize("left", [0, 1, 3], ids=["first shard", "second shard", "feature file"])
def test_a_disk_that_fills_up_while_pictures_are_encoded(hub, tmp_path, full_disk, left):
    full_disk |= {"suffix": ".safetensors", "left": left}
    with pytest.raises(KshotError, match="the disk is full: cannot write"):
        encode(str(hub / ADDRESS), tmp_path / "features")
    full_disk["suffix"] = ""
    assert encode(str(hub / ADDRESS), tmp_path / "features") == encode(str(hub / ADDRESS), tmp_path / "own")
    assert not list(tmp_path.rglob(".tmp-*"))


def test_a_disk_that_fills_up_while_a_shard_is_fetched(hub, serve, tmp_path, monkeypatch):
    from huggingface_hub import file_download

    real = file_download.http_get

    def full(*arguments, **options):
        if "tar" in arguments[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **options)

    server = serve(hub)
    with monkeypatch.context() as now:
        now.setattr(file_download, "http_get", full)
        with pytest.raises(KshotError, match=r"the disk is full: cannot fetch train/0.tar of clip"):
            encode(f"{server.url}/{ADDRESS}", tmp_path / "features")
    assert encode(f"{server.url}/{ADDRESS}", tmp_path / "features") == encode(str(hub / ADDRESS), tmp_path / "own")
