"""Builders of the open benchmark: digits for real, the others on stand-ins of their packages."""

import gzip
import json
import os
import stat
import tarfile
from pathlib import Path

import numpy as np
import pytest
from tools.open_sets import SETS, drawings, fetch, small
from tools.open_sets.openset import Listing, pictures_sha256, subset

from kshot.encode.sources.source import Picture
from kshot.errors import FeatureError, KshotError
from picture_sets import add


def png(path: Path, values) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, np.uint8)).save(path)


def test_digits_hash_as_the_catalog_says(tmp_path):
    chosen = SETS["digits"]
    assert chosen.verify(chosen.source(tmp_path)) == chosen.entry.pictures_sha256


def test_other_pictures_and_other_names_are_refused(tmp_path):
    source = SETS["digits"].source(tmp_path, whole=True)
    with pytest.raises(FeatureError, match="the benchmark was made of"):
        SETS["digits"].verify(source)


def test_every_set_has_an_entry_with_licence_source_and_hash():
    for chosen in SETS.values():
        entry = chosen.entry
        assert entry.licence
        assert entry.source
        assert entry.templates
        assert len(entry.pictures_sha256) == 64


def test_the_subset_depends_on_names_alone():
    rng = np.random.default_rng(0)
    names = [f"class {n}" for n in range(6)]
    pictures = [
        Picture("all", f"{name}/{n}", label, lambda: None) for label, name in enumerate(names) for n in range(9)
    ]
    straight = subset(Listing(tuple(names), pictures), {"all": 4}, 3)
    order = rng.permutation(len(pictures))
    shuffled = subset(Listing(tuple(names), [pictures[i] for i in order]), {"all": 4}, 3)
    assert shuffled == straight
    assert len(straight.classes) == 3
    assert [p.label for p in straight.pictures] == [0] * 4 + [1] * 4 + [2] * 4
    assert all(p.id.startswith(straight.classes[p.label]) for p in straight.pictures)


def test_the_hash_sees_pixels_ids_and_labels():
    from PIL import Image

    def one(colour="red", label=0, name="a"):
        return pictures_sha256([Picture("all", name, label, lambda: Image.new("RGB", (2, 2), colour))])

    assert len({one(), one("blue"), one(label=1), one(name="b"), one()}) == 4


def test_cifar_rows_become_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(small, "CIFAR_ROWS", 2)
    rng = np.random.default_rng(0)
    sheets = {}
    for batches in small.CIFAR_BATCHES.values():
        for batch in batches:
            sheets[batch] = rng.integers(0, 255, (2, 1024, 3))
            png(tmp_path / f"{batch}.png", sheets[batch])
    (tmp_path / "train_lables.json").write_text(json.dumps(list(range(10))))
    (tmp_path / "test_lables.json").write_text("[3, 8]")
    found = {p.id: p for p in small.list_cifar10(tmp_path).pictures}
    assert (found["data_batch_3/00001"].label, found["test_batch/00001"].label) == (5, 8)
    assert found["test_batch/00001"].part == "test"
    values = np.asarray(found["data_batch_3/00001"].load())
    np.testing.assert_array_equal(values, sheets["data_batch_3"][1].reshape(32, 32, 3))


def test_fashion_mnist_files(tmp_path):
    folder = tmp_path / "usr/share/datasets/fashion-mnist"
    folder.mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 255, (3, 28, 28), dtype=np.uint8)
    for stem in ("train", "t10k"):
        header = b"".join(int(n).to_bytes(4, "big") for n in (2051, 3, 28, 28))
        (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(header + images.tobytes()))
        (folder / f"{stem}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + bytes([9, 0, 4])))
    found = small.list_fashion_mnist(tmp_path)
    assert [(p.part, p.label) for p in found.pictures] == [(part, n) for part in ("pool", "test") for n in (9, 0, 4)]
    np.testing.assert_array_equal(np.asarray(found.pictures[1].load())[..., 2], images[1])


def test_sketches_are_dark_on_white(tmp_path):
    folder = tmp_path / "src/drawings"
    folder.mkdir(parents=True)
    strokes = np.zeros(784)
    strokes[30] = 1
    (folder / "wine glass.ndjson.gz").write_bytes(gzip.compress(json.dumps(strokes.tolist()).encode() + b"\n"))
    only = small.list_quickdraw(tmp_path)
    assert only.classes == ("wine glass",)
    values = np.asarray(only.pictures[0].load())
    assert values[1, 2].tolist() == [0, 0, 0]
    assert values.sum() == 255 * 3 * 783


@pytest.fixture
def two_are_enough(monkeypatch):
    monkeypatch.setattr(drawings, "LEAST_PICTURES", 2)


def test_stamps_take_the_topmost_folder_and_no_mirrored_twin(tmp_path, two_are_enough):
    root = tmp_path / "usr/share/tuxpaint/stamps"
    for name in ("animals/birds/a.png", "animals/b.png", "animals/b_mirror.png", "space/moon.png"):
        png(root / name, np.zeros((2, 2, 3)))
    found = drawings.list_tuxpaint(tmp_path)
    assert found.classes == ("animals",)
    assert [p.id for p in found.pictures] == ["animals/b.png", "animals/birds/a.png"]


def test_clip_art_takes_folders_with_meaning(tmp_path, two_are_enough):
    root = tmp_path / "usr/share/openclipart/png"
    kept = ["food/fruit", "signs_and_symbols/flags/asia", "animals"]
    for folder in (*kept, "computer/icons/flat-theme", "recreation/games/cards/white", "unsorted"):
        for number in range(2):
            png(root / folder / f"{number}.png", np.zeros((2, 2, 3)))
    png(root / "animals" / "vast.png", np.zeros((1, 1, 3)))
    monster = bytearray((root / "animals" / "vast.png").read_bytes())
    monster[16:24] = (60_000).to_bytes(4, "big") * 2
    (root / "animals" / "vast.png").write_bytes(monster)
    found = drawings.list_openclipart(tmp_path)
    assert found.classes == ("animals", "flags of asia", "fruit")
    assert len(found.pictures) == 6


def test_no_emoji_and_no_vendor_straddles_pool_and_test(tmp_path):
    vendors = {
        v: tmp_path / f"npm-emoji-datasource-{v}-{drawings.EMOJI_VERSION}/package" for v in drawings.POOL_VENDORS
    }
    assets = tmp_path / f"npm-lobehub-fluent-emoji-3d-{drawings.FLUENT_VERSION}/package/assets"
    table = []
    for number in range(40):
        code = f"{0x1F400 + number:X}" if number else "0023-FE0F-20E3"
        joined = f"{code}-200D-2642" if number == 39 else code
        entry = {"unified": joined, "subcategory": "animal-bug", "image": f"{code.lower()}.png"}
        table.append(entry | {f"has_img_{v}": number != 38 for v in vendors})
        for vendor, folder in vendors.items():
            png(folder / "img" / vendor / "64" / entry["image"], np.zeros((2, 2, 3)))
        png(assets / f"{joined.lower().lstrip('0')}.webp", np.zeros((2, 2, 3)))
    (vendors["google"] / "emoji.json").write_text(json.dumps(table))
    found = drawings.list_emoji(tmp_path)
    assert found.classes == ("bug animal",)
    sides = {part: {tuple(p.id.split("/")) for p in found.pictures if p.part == part} for part in ("pool", "test")}
    codes = {part: {code for _, code in ids} for part, ids in sides.items()}
    assert {vendor for vendor, _ in sides["pool"]} == {"google", "twitter"}
    assert {vendor for vendor, _ in sides["test"]} == {"fluent"}
    assert not codes["pool"] & codes["test"]
    assert len(codes["pool"] | codes["test"]) == 38
    assert (len(sides["pool"]), len(sides["test"])) == (52, 12)


def fake_client(folder: Path, name: str, script: str, monkeypatch) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_npm_packages_are_fetched_once_by_name_and_version_unless_they_broke_off(tmp_path, monkeypatch):
    archive, calls = tmp_path / "thing-1.2.tgz", tmp_path / "calls"
    with tarfile.open(archive, "w:gz") as tar:
        add(tar, "package/package.json", b"{}")
        add(tar, "package/pictures", os.urandom(100_000))
    whole = archive.read_bytes()
    fake_client(tmp_path, "npm", f'echo "$@" >> {calls}; cp {archive} .; echo thing-1.2.tgz', monkeypatch)
    archive.write_bytes(whole[:-50_000])
    with pytest.raises(EOFError):
        fetch.npm_package("@scope/thing", "1.2", tmp_path / "downloads")
    archive.write_bytes(whole)
    for _ in range(2):
        package = fetch.npm_package("@scope/thing", "1.2", tmp_path / "downloads")
    assert (package / "package.json").read_text() == "{}"
    assert (package / "pictures").stat().st_size == 100_000
    assert calls.read_text() == 2 * "pack @scope/thing@1.2 --silent\n"


def test_a_client_that_fails_or_is_absent(tmp_path, monkeypatch):
    fake_client(tmp_path, "npm", "echo 'npm error 404 no such package' >&2; exit 1", monkeypatch)
    with pytest.raises(KshotError, match="`npm pack thing@1 --silent` failed: npm error 404"):
        fetch.npm_package("thing", "1", tmp_path / "downloads")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(KshotError, match=r"fetched by apt-get .* which is not on this machine"):
        fetch.debian_package("thing", tmp_path / "downloads")
