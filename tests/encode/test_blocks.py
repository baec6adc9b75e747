"""Blocks are encoded by whoever is there: the files are equal byte for byte, and whoever dies leaves nothing half."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from colours import ColourEncoder
from kshot.data.store import Store
from kshot.encode.blocks import Crew
from kshot.encode.encoders import load_encoder
from kshot.encode.encoding import encode_dataset, encode_jobs, encode_pictures
from kshot.encode.pictures import decode
from kshot.encode.sources import find_source, source
from kshot.encode.targets import Encoding
from kshot.errors import KshotError
from kshot.types import Views
from kshot.workers import Shard, Workers
from picture_sets import Hub, write_pictures, write_shards

VIEWS = {Views("tip", 2): None}
TWO = Crew(Workers(2))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(source, "ROWS_PER_SHARD", 5)


def hashes(folder):
    return {(m.dataset, m.backbone, m.part): m.sha256 for m in Store(folder).manifests()}


def encode(folder, place, encoder, crew=TWO, dataset="set", views=VIEWS):
    job = Encoding(dataset, "own", find_source(str(place)), encoder, batch=2, threads=1)
    encode_jobs([job], Store(folder), views, {"photo": [["red"], ["green"], ["blue"]]}, crew)
    return hashes(folder)


def digits(folder):
    """Some of an open set's pictures, as files: scans of handwritten digits, enlarged."""
    from PIL import Image
    from sklearn.datasets import load_digits

    data = load_digits()
    for row in range(24):
        picture = Image.fromarray((data.images[row] * 15.9).astype(np.uint8)).resize((64, 48))
        (place := folder / "digits" / f"{data.target[row] % 3}").mkdir(parents=True, exist_ok=True)
        picture.save(place / f"{row}.png")
    return folder / "digits"


def photos(folder):
    """Noise in colours, in webdataset shards with official splits."""
    return write_shards(folder / "wds", {"train": 3, "test": 2}, per_shard=4)


@pytest.mark.parametrize("pictures", [digits, photos])
def test_the_bundled_encoder_gives_the_same_bytes_whoever_computes(tmp_path, pictures):
    pytest.importorskip("efficientnet_lite_pytorch")
    encoder, place = load_encoder("lite0"), pictures(tmp_path)
    alone = encode(tmp_path / "alone", place, encoder, Crew())
    assert len(alone) == (4 if pictures is digits else 5)
    assert encode(tmp_path / "two", place, encoder, Crew(Workers(2), devices=("cpu", "cpu:0"))) == alone
    for shard in (2, 0, 1):
        before = hashes(tmp_path / "shards")
        encode(tmp_path / "shards", place, encoder, Crew(share=Shard(shard, 3)))
    assert len(before) < len(alone)
    assert hashes(tmp_path / "shards") == alone
    assert not [*(tmp_path / "shards" / ".encoding").rglob("*.safetensors")]


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
def test_workers_of_a_dask_cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    place, encoder = digits(tmp_path), load_encoder("lite0")
    alone = encode(tmp_path / "alone", place, encoder, Crew())
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        crew = Crew(Workers(backend=f"dask:{cluster.scheduler_address}"))
        assert encode(tmp_path / "dask", place, encoder, crew) == alone


def test_encode_dataset_takes_workers(tmp_path):
    place = write_pictures(tmp_path / "set", 6)
    made = encode_dataset(place, "set", ColourEncoder(), features=tmp_path / "two", workers=2)
    encode_dataset(place, "set", ColourEncoder(), features=tmp_path / "alone")
    assert made.tiers == ["photo"]
    assert hashes(tmp_path / "two") == hashes(tmp_path / "alone")


class Dying(ColourEncoder):
    """Kills its process when it meets a picture, as long as a file is missing; without a file always."""

    def __init__(self, at, mark=None):
        super().__init__()
        self.at, self.mark = at, mark

    def encode_images(self, inputs):
        inputs = np.stack(inputs)
        if any(np.array_equal(picture, self.at) for picture in inputs) and not (self.mark and self.mark.exists()):
            if self.mark:
                self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_images(inputs)


def test_a_worker_that_dies_leaves_its_block_missing(tmp_path):
    place = write_pictures(tmp_path / "set", 6)
    at = ColourEncoder().preprocessing(decode(place / "green" / "3.png", "3"))
    alone = encode(tmp_path / "alone", place, ColourEncoder(), Crew())
    assert encode(tmp_path / "once", place, Dying(at, tmp_path / "dead")) == alone
    assert (tmp_path / "dead").exists()
    with pytest.raises(KshotError, match="blocks of pictures are missing, because their workers ended"):
        encode(tmp_path / "always", place, Dying(at))
    assert not hashes(tmp_path / "always")
    assert encode(tmp_path / "always", place, ColourEncoder()) == alone


DRIVER = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from colours import ColourEncoder
from kshot.encode.sources import source
source.ROWS_PER_SHARD = 5
from test_blocks import TWO, Crew, encode
class Slow(ColourEncoder):
    def encode_images(self, inputs):
        import time
        time.sleep(0.05)
        return super().encode_images(inputs)
encode(Path({folder!r}), Path({place!r}), Slow(), {crew})
"""


@pytest.mark.ci
@pytest.mark.parametrize("crew", ["TWO", "Crew()"])
def test_drivers_that_are_killed_lose_nothing(tmp_path, crew):
    """Killed soon after each new block; what was whole stays, and the last run ends with the same bytes."""
    place, paths = (
        write_pictures(tmp_path / "set", 20),
        [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")],
    )
    alone, folder = encode(tmp_path / "alone", place, ColourEncoder(), Crew()), tmp_path / "killed"
    code = DRIVER.format(paths=paths, folder=str(folder), place=str(place), crew=crew)
    rng, kills = np.random.default_rng(0), 0
    while True:
        before = {*folder.rglob("[!.]*.safetensors")}
        driver = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        while driver.poll() is None and not {*folder.rglob("[!.]*.safetensors")} - before:
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 0.5))
        driver.kill()
        if (code_of_exit := driver.wait()) == 0:
            break
        assert code_of_exit == -signal.SIGKILL, "the driver failed by itself"
        kills += 1
        assert hashes(folder).items() <= alone.items()
    assert kills >= 3
    assert hashes(folder) == alone


def test_the_next_shard_is_fetched_while_one_is_encoded(serve, tmp_path):
    """No more than two are on the disk, and a hub that is slow is waited for once."""
    place = write_shards(tmp_path / "hub" / "datasets" / "clip-benchmark" / "wds_x" / "resolve" / "main", {"test": 5})
    server: Hub = serve(tmp_path / "hub")
    address, most, at = f"{server.url}/datasets/clip-benchmark/wds_x/resolve/main", [], []

    class Watching(ColourEncoder):
        def encode_images(self, inputs):
            time.sleep(0.2)
            most.append(len([*(tmp_path / "hub-cache").rglob("*.tar")]))
            at.append(sum(path.endswith(".tar") for path, _ in server.requests))
            return super().encode_images(inputs)

    job = Encoding("x", "own", find_source(address), Watching(), threads=1)
    encode_pictures([job], Store(tmp_path / "features"))
    assert max(most) <= 2
    assert at[0] >= 2, "the second is asked for while the first is encoded"
    assert not [*(tmp_path / "hub-cache").rglob("*.tar")]
    job = Encoding("x", "own", find_source(str(place)), ColourEncoder(), threads=1)
    encode_pictures([job], Store(tmp_path / "local"))
    assert {*hashes(tmp_path / "local").values()} == {*hashes(tmp_path / "features").values()}
