"""A folder as people have it: two hundred files of all kinds, and each of them is used or named."""

import os
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from colours import COLOURS, shade


def turned():
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def cut_off(path, picture):
    picture.save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])


def huge(path, picture):
    """Four hundred million pixels, says its header."""
    picture.save(path)
    content = bytearray(path.read_bytes())
    content[16:24] = struct.pack(">II", 20_000, 20_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    path.write_bytes(content)


GOOD = [
    (".jpg", lambda path, picture: picture.save(path, exif=turned())),
    (".png", lambda path, picture: picture.convert("RGBA").save(path)),
    (".gif", lambda path, picture: picture.save(path, save_all=True, append_images=[picture.rotate(90)])),
    (".bmp", lambda path, picture: picture.quantize(16).save(path)),
    (".tif", lambda path, picture: picture.convert("CMYK").save(path)),
    (".JPEG", lambda path, picture: picture.convert("CMYK").save(path)),
    (".png", lambda path, picture: picture.convert("L").save(path)),
    (".HEIC", lambda path, picture: picture.resize((64, 64)).save(path, format="HEIF")),
    (".avif", lambda path, picture: picture.resize((64, 64)).save(path)),
    (".webp", lambda path, picture: picture.save(path)),
]
BAD = [
    (".png", cut_off),
    (".png", huge),
    (".jpg", lambda path, picture: path.write_bytes(b"")),
    (".jpeg", lambda path, picture: path.write_text("not a picture")),
    (".png", lambda path, picture: picture.resize((900, 2)).save(path)),
    (".CR2", lambda path, picture: path.write_bytes(b"II*\0 nothing")),
]
NAMES = ("plain", "naïve", "ナマエ", "with space", "[bold]", "📷", "dots.in.name", "-dash")


@pytest.fixture
def mixed(tmp_path):
    """Files that can be used and files that cannot, under names of all kinds."""
    import pillow_heif

    pillow_heif.register_heif_opener()
    rng, good, bad = np.random.default_rng(0), [], []
    for number in range(180):
        is_bad = number % 5 == 4
        suffix, write = BAD[number // 5 % len(BAD)] if is_bad else GOOD[len(good) % len(GOOD)]
        colour = list(COLOURS)[number % 3]
        path = tmp_path / "mixed" / colour / f"{NAMES[number % len(NAMES)]}-{number}x{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        shade(tmp_path / "one.png", colour, rng)
        with Image.open(tmp_path / "one.png") as picture:
            write(path, picture.copy())
        (bad if is_bad else good).append(path)
    return tmp_path / "mixed", good, bad


def test_two_hundred_files_are_all_accounted_for(mixed, fit):
    root, good, bad = mixed
    copies = [root / "red" / f"copy-{number}.webp" for number in range(8)]
    for copy in copies:
        shutil.copy(next(path for path in good if path.parent.name == "red"), copy)
    for number in range(8):
        bad.append(root / "blue" / f"lost-{number}.png")
        bad[-1].symlink_to(root / "nowhere.png")
    for number in range(4):
        shade(root / f"loose-{number}.png", "green", np.random.default_rng(1))
    assert sum(len(files) for _, _, files in os.walk(root)) == 200
    fitted = fit(root)
    used = {root / name for name in fitted.head.about.shot_names}
    left = {root / name for name in fitted.copies}
    # A file and its copies are one picture; which of them is used does not matter.
    assert used | left == {*good, *copies}
    assert len(used) == len(good)
    assert len(fitted.unreadable) == len(bad)
    for path in bad:
        assert sum(str(path) in line for line in fitted.unreadable) == 1, path
    assert any("4 pictures lie in" in note for note in fitted.notes)
    assert fitted.assessment.accuracy.value > 0.85
    assert not any(" object at " in line or "Traceback" in line for line in fitted.unreadable)
    assert all(Path(name).suffix for name in fitted.head.about.shot_names)
