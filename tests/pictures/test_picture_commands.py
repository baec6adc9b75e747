"""The commands on the bundled drawings with the real small encoder, and what they say of bad input."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with drawings and a head, made once."""
    from kshot.pictures.fit import fit_pictures
    from kshot.pictures.photos import copy_sample

    folder = tmp_path_factory.mktemp("fitted")
    copy_sample(folder / "drawings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSHOT_CACHE", str(folder / "cache"))
        fit_pictures(folder / "drawings/photos").save(folder / "head.safetensors")
    return folder


@pytest.fixture
def place(fitted, tmp_path, monkeypatch):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def assert_refused(done, *words):
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in done.stderr


def test_fit_says_what_it_found(kshot, place):
    shutil.copy(min(Path("drawings/photos/fruit").iterdir()), "drawings/photos/birds/lost.png")
    Path("drawings/photos/birds/broken.jpg").write_text("nothing")
    done = kshot("fit", "drawings/photos", "-o", "new.safetensors")
    assert done.returncode == 0, done.stderr
    for words in (
        "Zero-shot",
        "LOO blend",
        "left out: ",
        "broken.jpg",
        "taken for",
        "in two classes",
        "one more picture",
    ):
        assert words in done.stdout
    assert Path("new.safetensors").is_file()


def test_predictions_are_better_than_chance_and_agree_between_formats(kshot, place):
    rows = json.loads(kshot("predict", "head.safetensors", "drawings/new", "--format", "json").stdout)
    lines = kshot("predict", "head.safetensors", "drawings/new", "--format", "csv", "--top", "1").stdout
    assert [row["class"] for row in csv.DictReader(io.StringIO(lines))] == [row["top"][0]["name"] for row in rows]
    right = sum(Path(row["picture"]).name.startswith(row["top"][0]["name"]) for row in rows)
    assert right >= 5, "one in six would be chance: two of twelve"


def test_what_a_system_hides_among_pictures_is_left_alone(kshot, place):
    before = kshot("predict", "head.safetensors", "drawings/new").stdout
    for folder in ("drawings/new", "drawings/photos/birds"):
        Path(folder, "._fork.png").write_bytes(b"\x00\x05\x16\x07")
        Path(folder, ".thumbnails").mkdir()
        Path(folder, ".thumbnails/small.png").write_bytes(b"none")
    done = kshot("predict", "head.safetensors", "drawings/new")
    assert (done.returncode, done.stdout) == (0, before)
    assert "left out" not in kshot("fit", "drawings/photos", "-o", "new.safetensors").stdout


def test_formats_that_are_not_read_are_told_beside_the_others(kshot, place):
    Path("drawings/new/camera.CR3").write_bytes(b"\x00\x00\x00\x18ftypcrx ")
    Path("drawings/new/notes.txt").write_text("not a picture")
    done = kshot("predict", "head.safetensors", "drawings/new", "--format", "json")
    rows = json.loads(done.stdout)
    assert done.returncode == 1
    assert [Path(row["picture"]).name for row in rows if row["error"]] == ["camera.CR3"]
    assert len(rows) == len(list(Path("drawings/new").glob("*.png"))) + 1


def test_unreadable_pictures_are_told_beside_the_others(kshot, place):
    Path("text.jpg").write_text("nothing")
    some = next(Path("drawings/new").iterdir())
    done = kshot("predict", "head.safetensors", "text.jpg", "absent.png", str(some), "--format", "json")
    assert done.returncode == 1
    assert [bool(row["error"]) for row in json.loads(done.stdout)] == [True, True, False]


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_a_name_that_is_not_utf8_is_shown_escaped(kshot, place, format):
    some = min(Path("drawings/new").iterdir())
    some.rename(os.fsdecode(b"drawings/new/caf\xe9.png"))
    done = kshot("predict", "head.safetensors", "drawings/new", "--format", format)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"caf\udce9.png" in done.stdout


def test_one_picture_per_class_counts_what_zero_shot_was_measured_on(kshot, place):
    for folder in Path("drawings/photos").iterdir():
        for path in sorted(folder.iterdir())[1:]:
            path.unlink()
    done = kshot("fit", "drawings/photos", "-o", "new.safetensors")
    assert "on 6 pictures, of which zero-shot had seen none" in done.stdout
    assert "on 0 pictures" not in done.stdout


@pytest.mark.slow
def test_without_a_writable_cache_it_goes_on_and_says_so_once(kshot, place, monkeypatch):
    """Root may write anywhere, so the cache's folder is a file."""
    with_cache = kshot("predict", "head.safetensors", "drawings/new").stdout
    monkeypatch.setenv("KSHOT_CACHE", "/dev/null")
    fitted = kshot("fit", "drawings/photos", "-o", "new.safetensors")
    predicted = kshot("predict", "new.safetensors", "drawings/new")
    assert predicted.stdout == with_cache
    for done in (fitted, predicted):
        assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
        assert "KSHOT_CACHE" in done.stderr


def test_explain_and_another_encoder(kshot, place):
    some = str(next(Path("drawings/new").iterdir()))
    done = kshot("explain", "head.safetensors", some)
    assert done.returncode == 0
    assert "nearest shot" in done.stdout
    refused = kshot("predict", "head.safetensors", some, "--backbone", "lite2")
    assert_refused(refused, "fitted on features of lite0", "weights_sha256")


def test_bad_input_is_one_sentence(kshot, place):
    assert_refused(kshot("fit", "nowhere"), "there is no folder nowhere")
    assert_refused(kshot("fit", "drawings/photos", "-o", "new.safetensors", "--prompt", "a drawing"), "has no {}")
    assert_refused(kshot("fit", "drawings/photos", "-o", "new.safetensors", "--method", "clpa"), "Did you mean clap")
    assert_refused(kshot("predict", "nowhere.safetensors", "x.png"), "no head file")
    Path("bad.safetensors").write_text("nothing")
    assert_refused(kshot("predict", "bad.safetensors", "x.png"), "not a kshot head file")
    assert_refused(kshot("features", "sample", "drawings"), "not empty")
    assert_refused(kshot("serve", "head.safetensors", "--no-token", "--host", "0.0.0.0"), "give a token")


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("starlette", ("serve", "head.safetensors"), "serve"),
        ("onnx", ("export", "head.safetensors", "--onnx", "head.onnx"), "serve"),
        ("torch", ("predict", "head.safetensors", "x.png"), "encode"),
        ("efficientnet_lite_pytorch", ("fit", "drawings/photos", "-o", "new.safetensors"), "lite"),
    ],
)
def test_without_an_extra_the_pip_command_is_printed(place, monkeypatch, module, arguments, extra):
    monkeypatch.chdir(place)
    code = f"import sys; sys.modules['{module}'] = None; sys.argv = {['kshot', *arguments]}; import kshot.__main__"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert_refused(done, f"pip install 'kshot[{extra}]'")


@pytest.mark.slow
def test_a_thousand_classes(tmp_path, monkeypatch, kshot):
    """Two pictures of each, patterns that only their own class shares."""
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for number in range(1000):
        folder = tmp_path / "photos" / f"pattern {number:03d}"
        folder.mkdir(parents=True)
        pattern = rng.integers(0, 256, (8, 8, 3))
        for shot in range(2):
            values = np.clip(pattern + rng.normal(0, 20, pattern.shape), 0, 255).astype(np.uint8)
            Image.fromarray(values).resize((96, 96), Image.Resampling.NEAREST).save(folder / f"{shot}.png")
    done = kshot("fit", "photos", "-o", "head.safetensors")
    assert done.returncode == 0, done.stderr
    assert "weakest of 1000 classes" in done.stdout
    # A slow machine tells its progress more often; the report is what must stay short.
    assert len([line for line in done.stdout.splitlines() if "/" not in line.split(" ")[0]]) < 100
    said = kshot("predict", "head.safetensors", "photos/pattern 007/0.png", "--top", "1", "--format", "json")
    assert "pattern 007" in said.stdout
