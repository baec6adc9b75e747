"""Encoding goes on where it was, and notices when the pictures are not the same any more."""

import shutil
from dataclasses import replace

import pytest

from colours import ColourEncoder
from kshot.data.store import Store
from kshot.encode.encoding import check_reference, encode_pictures
from kshot.encode.pictures import decode
from kshot.encode.sources import find_source, source
from kshot.encode.targets import Encoding
from kshot.errors import FeatureError
from kshot.types import Views
from picture_sets import picture, write_pictures


class Mortal(ColourEncoder):
    """Counts the pictures it was given, and dies at a chosen one."""

    def __init__(self, dies_after=10**9):
        super().__init__()
        self.seen, self.dies_after = 0, dies_after

    def encode_images(self, batch):
        self.seen += len(batch)
        if self.seen > self.dies_after:
            raise KeyboardInterrupt
        return super().encode_images(batch)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "ROWS_PER_SHARD", 4)
    return write_pictures(tmp_path / "set", 5)


def encode(folder, store, encoder=None):
    job = Encoding("set", "four", find_source(str(folder)), encoder or Mortal(), batch=2, threads=1)
    [manifest] = encode_pictures([job], store)
    return job, manifest


def assert_holds(store, folder):
    stored = store.images("set", "four", "all")
    assert stored.ids == tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.png")))
    encoder = ColourEncoder()
    for name, row in zip(stored.ids, stored.X, strict=True):
        alone = encoder.preprocessing(decode(folder / name, name))
        assert row == pytest.approx(encoder.encode_images(alone[None])[0], abs=1e-3)


@pytest.mark.parametrize("change", ["nothing", "one less", "one more"])
def test_a_resumed_encoding_holds_the_pictures_that_are_there(folder, tmp_path, change):
    store = Store(tmp_path / "features")
    with pytest.raises(KeyboardInterrupt):
        encode(folder, store, Mortal(dies_after=10))
    if change == "one less":
        (folder / "blue" / "1.png").unlink()
    if change == "one more":
        (folder / "green" / "00.png").write_bytes(picture(1, 9))
    second = Mortal()
    encode(folder, store, second)
    assert_holds(store, folder)
    assert second.seen < 15 if change != "one less" else second.seen == 14
    assert not list((store.root / ".encoding").rglob("*.safetensors"))


def test_a_finished_encoding_of_other_pictures_is_not_taken_for_these(folder, tmp_path):
    store = Store(tmp_path / "features")
    encode(folder, store)
    unchanged = Mortal()
    job, _ = encode(folder, store, unchanged)
    assert unchanged.seen == 0
    with pytest.raises(FeatureError, match=r"holds all of another encoding \(differs in weights_sha256\)"):
        encode(folder, store, ColourEncoder("second"))
    encode_pictures([job], store, {Views("tip", 1): None})
    (folder / "red" / "new.png").write_bytes(picture(0, 9))
    with pytest.raises(FeatureError, match="differs in pictures: 15 then, 16 now"):
        encode(folder, store)
    changed = Encoding("set", "four", find_source(str(folder)), Mortal(), batch=2, threads=1)
    (store.root / "set" / "four" / "all.json").unlink()
    with pytest.raises(FeatureError, match="all-tip-view00 of another encoding"):
        encode_pictures([changed], store, {Views("tip", 1): None})


def test_an_encoder_that_changed_is_refused_before_pictures_are_read(folder, tmp_path):
    store = Store(tmp_path / "features")
    job, _ = encode(folder, store)
    check_reference(job, store)
    with pytest.raises(FeatureError, match="four does not encode as it did before"):
        check_reference(replace(job, encoder=ColourEncoder(pixels=9)), store)


def test_another_process_that_was_faster(folder, tmp_path):
    """It joined the shards that we share and removed them, while we were at the last one."""
    store = Store(tmp_path / "features")

    class Overtaken(Mortal):
        def encode_images(self, inputs):
            if self.seen == 12:
                encode(folder, store)
            return super().encode_images(inputs)

    _, manifest = encode(folder, store, Overtaken())
    assert manifest.rows == 15
    assert_holds(store, folder)
    shutil.rmtree(store.root / "set")
    encode(folder, store)
    assert_holds(store, folder)


def test_what_cannot_be_read_is_told_and_left_out(folder, tmp_path, caplog):
    """At the beginning and the end, a whole batch of them; a picture that is mended later counts as another one."""
    store = Store(tmp_path / "features")
    for name in ("blue/00.png", "green/2.png", "green/20.png", "green/21.png", "red/9.png"):
        (folder / name).write_bytes(b"not a picture")
    encode(folder, store)
    told = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(told) == 5
    assert "green/21.png" in " ".join(told)
    stored = store.images("set", "four", "all")
    assert len(stored.ids) == 14
    again = Mortal()
    encode(folder, store, again)
    assert again.seen == 0
    (folder / "green" / "2.png").write_bytes(picture(1, 2))
    with pytest.raises(FeatureError, match="pictures: 14 then"):
        encode(folder, store)
