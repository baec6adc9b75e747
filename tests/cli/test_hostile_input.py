"""Input that nobody meant well: one sentence, never a traceback; and names that do nothing where they are shown."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kshot.bench.study import parse_study
from kshot.data import gate as check
from kshot.encode.pictures import decode
from kshot.encode.sources.picture_files import csv_source
from kshot.encode.sources.webdataset import webdataset_source
from kshot.errors import SHOW_CONTROLS, InputError, KshotError, StudyError
from kshot.report.renderings import markdown_text
from kshot.report.table import Table, csv_text
from kshot.types import Labelled
from kshot.workers import Shard

AXES = {"datasets": ["a"], "backbones": ["b"], "tiers": ["c"], "shots": [1], "seeds": [0]}


@pytest.mark.parametrize("shard", ["①/3", "1/③", "²/3", "-1/3", "3/3", "1", "/", "1/3/5", "１/３ "])
def test_shards_that_are_none(shard):
    with pytest.raises(KshotError, match="is not of the form i/n"):
        Shard.parse(shard)


def test_a_date_is_no_parameter():
    import tomllib

    spec = tomllib.loads('m = {use = "clap", as = "x", seed = 1979-05-27, list = [07:32:00]}')["m"]
    with pytest.raises(StudyError, match="parameter seed of 'x' is 1979-05-27"):
        parse_study({"name": "s", **AXES, "methods": [spec]}, "s.toml")


@pytest.mark.parametrize(
    "content",
    [
        "path,label\nä.png,ä\n".encode("latin-1"),
        "path,label\na.png,b\n".encode("utf-16"),
        b"path,label\na.png\n",
        b"path,label\na\0b.png,c\n",
        b"path,label\n" + b'"' + b"x" * 200_000,
        b"",
        b"label\nx\n",
    ],
)
def test_csv_files_that_are_none(tmp_path, content):
    (tmp_path / "list.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"list\.csv|names no file|holds no pictures"):
        csv_source(tmp_path / "list.csv")


def test_a_list_that_names_a_circle_of_links(tmp_path):
    (tmp_path / "a.png").symlink_to(tmp_path / "a.png")
    (tmp_path / "list.csv").write_text("path,label\na.png,b\n")
    source = csv_source(tmp_path / "list.csv")
    with pytest.raises(InputError, match=r"a\.png"):
        source.rows[0].load()


@pytest.mark.parametrize("count", [b"", b"three", b"-1", b"0", b"1\n2", b"9" * 30, b"\xff\xfe", "③".encode()])
def test_counts_of_shards_that_are_none(tmp_path, count):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "nshards.txt").write_bytes(count)
    (tmp_path / "classnames.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"nshards\.txt"):
        webdataset_source(str(tmp_path))


def test_class_names_that_are_no_text(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "nshards.txt").write_text("1")
    (tmp_path / "classnames.txt").write_bytes(b"a\xff\n")
    with pytest.raises(InputError, match=r"classnames\.txt is not a readable text file"):
        webdataset_source(str(tmp_path))


@pytest.mark.parametrize("format", ["TIFF", "PNG", "GIF", "WEBP", "BMP", "JPEG", "PPM"])
def test_damaged_pictures_are_pictures_or_refused(format):
    """Every decoder is given bytes that were changed in a few places; what it raises is told as InputError."""
    rng = np.random.default_rng(0)
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (9, 7, 3), np.uint8)).save(out, format)
    good = np.frombuffer(out.getvalue(), np.uint8)
    for _ in range(150):
        content = good.copy()
        content[rng.integers(len(content), size=rng.integers(1, 5))] = rng.integers(0, 256)
        try:
            picture = decode(content.tobytes(), "it", most_pixels=10_000, as_seen=True)
        except InputError:
            continue
        assert picture.mode == "RGB"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
        ("=1+1", "'=1+1"),
        ("+1+cmd", "'+1+cmd"),
        ("@sum(1)", "'@sum(1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("−0.25", "-0.25"),
        ("-0.25 [-0.5, 0.1]", "-0.25 [-0.5, 0.1]"),
        ("+1.5e-3", "+1.5e-3"),
        (-1.5, -1.5),
        (None, ""),
        ("CLAP", "CLAP"),
    ],
)
def test_no_formula_leaves_in_a_csv_file_and_numbers_stay_numbers(given, written):
    assert csv_text(given) == written


def test_names_are_shown_and_not_obeyed():
    evil = "\x1b]0;owned\x07\x9b31mred\r\x08"
    assert evil.translate(SHOW_CONTROLS) == "\\x1b]0;owned\\x07\\x9b31mred\\x0d\\x08"
    assert "two\nlines\tand ä".translate(SHOW_CONTROLS) == "two\nlines\tand ä"
    from kshot.report.renderings import plain

    shown = plain(Table(evil, ("a", evil), ((evil, evil),), evil))
    assert not set(shown) & set("\x1b\x07\x9b\r\x08")
    assert markdown_text("[x](javascript:1) <b> a|b `c`") == "[x]\\(javascript:1) \\<b\\> a\\|b \\`c\\`"


def test_scores_of_many_classes_come_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    X, text = rng.normal(size=(50, 8)).astype(np.float32), rng.normal(size=(7, 8)).astype(np.float32)

    class Stratum:
        dataset, backbone, test = "d", "b", Labelled(X, rng.integers(0, 7, 50))

    # Without the check of types that tests put around it: only three fields of a stratum are looked at.
    judged = getattr(check._judged, "__wrapped__", check._judged)
    accuracy = 100 * float(np.mean((X @ text.T).argmax(axis=1) == Stratum.test.y))
    monkeypatch.setattr(check, "MOST_SCORES", 20)
    assert f"{accuracy:.1f} %" in judged(Stratum, text, "t").what  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("arguments", [["status", "x" * 300], ["run", "/proc/self/mem"], ["run", "a" * 5000]])
def test_names_that_no_file_system_takes(tmp_path, arguments):
    done = subprocess.run([sys.executable, "-m", "kshot", *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("kshot: ")
    assert not list(Path(tmp_path).iterdir())
