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
from kshot.pictures.fit import fit_folder


def named(path, suffix):
    """A dot in a name begins no suffix."""
    return path.parent / f"{path.name}{suffix}"


def turned(path, picture):
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(named(path, ".jpg"), exif=exif)


def see_through(path, picture):
    picture.putalpha(200)
    picture.save(named(path, ".png"))


def moving(path, picture):
    picture.save(named(path, ".gif"), save_all=True, append_images=[picture.rotate(90)])


def palette(path, picture):
    picture.quantize(16).save(named(path, ".bmp"))


def ink(path, picture):
    picture.convert("CMYK").save(named(path, ".tif"))


def phone(path, picture):
    picture.resize((64, 64)).save(named(path, ".HEIC"), format="HEIF")


def camera(path, picture):
    picture.resize((64, 64)).save(named(path, ".avif"))


def web(path, picture):
    picture.save(named(path, ".webp"))


def cut_off(path, picture):
    picture.save(named(path, ".png"))
    whole = named(path, ".png").read_bytes()
    named(path, ".png").write_bytes(whole[: len(whole) // 3])


def empty(path, picture):
    named(path, ".jpg").write_bytes(b"")


def no_picture(path, picture):
    named(path, ".jpeg").write_text("not a picture")


def huge(path, picture):
    """Four hundred million pixels, says its header."""
    picture.save(named(path, ".png"))
    content = bytearray(named(path, ".png").read_bytes())
    content[16:24] = struct.pack(">II", 20_000, 20_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    named(path, ".png").write_bytes(content)


def thin(path, picture):
    picture.resize((900, 2)).save(named(path, ".png"))


def raw(path, picture):
    named(path, ".CR2").write_bytes(b"II*\0 nothing")


GOOD = (turned, see_through, moving, palette, ink, phone, camera, web)
BAD = (cut_off, empty, no_picture, huge, thin, raw)
NAMES = ("plain", "naïve", "ナマエ", "with space", "[bold]", "📷", "dots.in.name", "-dash")


@pytest.fixture
def mixed(tmp_path):
    """Files that can be used and files that cannot, under names of all kinds."""
    import pillow_heif

    pillow_heif.register_heif_opener()
    rng, good, bad = np.random.default_rng(0), [], []
    for number in range(180):
        kind = BAD[number // 5 % len(BAD)] if number % 5 == 4 else GOOD[number % len(GOOD)]
        colour = list(COLOURS)[number % 3]
        stem = tmp_path / "mixed" / colour / f"{NAMES[number % len(NAMES)]}-{number}x"
        shade(tmp_path / "one.png", colour, rng)
        stem.parent.mkdir(parents=True, exist_ok=True)
        before = set(stem.parent.iterdir())
        with Image.open(tmp_path / "one.png") as picture:
            kind(stem, picture.copy())
        (made,) = set(stem.parent.iterdir()) - before
        (bad if kind in BAD else good).append(made)
    return tmp_path / "mixed", good, bad


def test_two_hundred_files_are_all_accounted_for(mixed, colours):
    root, good, bad = mixed
    copies = [root / "red" / f"copy-{number}.webp" for number in range(8)]
    for copy in copies:
        shutil.copy(next(path for path in good if path.parent.name == "red"), copy)
    for number in range(8):
        bad.append(root / "blue" / f"lost-{number}.png")
        bad[-1].symlink_to(root / "nowhere.png")
    loose = [root / f"loose-{number}.png" for number in range(4)]
    for path in loose:
        shade(path, "green", np.random.default_rng(1))
    assert sum(len(files) for _, _, files in os.walk(root)) == 200
    fitted = fit_folder(root, encoder=colours, method="loo_blend")
    used = {root / name for name in fitted.head.about.shot_names}
    left = {root / name for name in fitted.copies}
    # A file and its copies are one picture; which of them is used does not matter.
    assert used | left == {*good, *copies}
    assert len(used) == len(good)
    assert len(fitted.unreadable) == len(bad)
    for path in bad:
        assert sum(str(path) in line for line in fitted.unreadable) == 1, path
    assert any("4 pictures lie in" in note for note in fitted.notes)
    assert fitted.assessment.accuracy.value > 0.9
    assert not any(" object at " in line or "Traceback" in line for line in fitted.unreadable)
    assert all(Path(name).suffix for name in fitted.head.about.shot_names)
