"""The commands on the bundled drawings with the real small encoder, and what they say of bad input."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from folders import assert_refused
from kshot.cli import pictures as cli


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with drawings and a head, made once."""
    from kshot.pictures.fit import fit_pictures
    from kshot.pictures.photos import copy_sample

    folder = tmp_path_factory.mktemp("fitted")
    copy_sample(folder / "drawings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSHOT_CACHE", str(folder / "cache"))
        fit_pictures(folder / "drawings/photos", method="loo_blend").save(folder / "head.safetensors")
    return folder


@pytest.fixture
def place(fitted, tmp_path, monkeypatch):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def predict(kshot, place):
    """Predictions of some pictures, and the exit code."""

    def call(*pictures):
        done = kshot("predict", "head.safetensors", *pictures, "--format", "json")
        return json.loads(done.stdout), done.returncode

    return call


def test_fit_says_what_it_found(kshot, place):
    """What a system hides beside pictures is not mentioned."""
    shutil.copy(min(Path("drawings/photos/fruit").iterdir()), "drawings/photos/birds/lost.png")
    for name in ("broken.jpg", "._fork.png", ".thumbnails/small.png"):
        path = Path("drawings/photos/birds", name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("nothing")
    done = kshot("fit", "drawings/photos", "-o", "new.safetensors")
    assert done.returncode == 0, done.stderr
    for words in (
        "Of new pictures like these about",
        "names alone",
        "broken.jpg",
        "taken for",
        "in two classes",
        "one more picture",
    ):
        assert words in done.stdout
    assert done.stdout.count("left out: ") == 1
    assert Path("new.safetensors").is_file()


def test_predictions_are_better_than_chance_and_agree_between_formats(kshot, predict):
    rows, _ = predict("drawings/new")
    lines = kshot("predict", "head.safetensors", "drawings/new", "--format", "csv", "--top", "1").stdout
    assert [row["class"] for row in csv.DictReader(io.StringIO(lines))] == [row["top"][0]["name"] for row in rows]
    right = sum(Path(row["picture"]).name.startswith(row["top"][0]["name"]) for row in rows)
    assert right >= 8, "one in six would be chance: two of twelve"


def test_what_cannot_be_read_is_told_beside_the_others(predict):
    for name in ("camera.CR3", "notes.txt", "text.jpg", "._fork.png"):
        Path("drawings/new", name).write_text("not a picture")
    rows, code = predict("drawings/new", "absent.png")
    assert code == 1
    assert sorted(Path(r["picture"]).name for r in rows if r["error"]) == ["absent.png", "camera.CR3", "text.jpg"]
    assert sum(not row["error"] for row in rows) == 12


def test_a_folder_is_one_line_a_picture_and_one_line_in_sum(kshot, place):
    """A pipe in the folder is refused, not waited for; what is not read stands after the table, apart from it."""
    os.mkfifo("drawings/new/pipe.png")
    Path("drawings/new/text.jpg").write_text("not a picture")
    done = kshot("predict", "head.safetensors", "drawings/new")
    assert len(done.stdout.splitlines()) == 13
    *problems, closing = [line for line in done.stderr.splitlines() if "pictures, " not in line]
    assert len([line for line in problems if line.startswith("not read: drawings/new/")]) == 2
    answers = re.findall(r"(\d+) (\w+)", closing.partition(":")[2].partition(";")[0])
    assert closing.startswith("12 pictures: ")
    assert closing.endswith("; 2 not read")
    assert sum(int(count) for count, _ in answers) == 12
    assert {name for _, name in answers} == {line.split()[1] for line in done.stdout.splitlines()[1:]}


def test_in_a_terminal_no_line_is_wrapped(place, monkeypatch):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(place)
    cli.predict(Path("head.safetensors"), [Path("drawings/new")])
    lines = sys.stdout.getvalue().splitlines()
    assert len(lines) == 13
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith("vehicles-")


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_a_name_that_is_not_utf8_is_shown_escaped(kshot, place, format):
    min(Path("drawings/new").iterdir()).rename(os.fsdecode(b"drawings/new/caf\xe9.png"))
    done = kshot("predict", "head.safetensors", "drawings/new", "--format", format)
    assert done.returncode == 0
    assert r"caf\udce9.png" in done.stdout


def test_one_picture_per_class_says_what_is_not_measured(kshot, place):
    for folder in Path("drawings/photos").iterdir():
        for path in sorted(folder.iterdir())[1:]:
            path.unlink()
    done = kshot("fit", "drawings/photos", "-o", "new.safetensors", "--method", "ncm")
    assert "6 pictures" in done.stdout
    assert "not calibrated" in done.stdout
    assert "0 pictures" not in done.stdout
    assert "not calibrated" in kshot("predict", "new.safetensors", "drawings/new").stderr


@pytest.mark.slow
def test_without_a_writable_cache_it_goes_on_and_says_so_once(place, monkeypatch):
    """Root may write anywhere, so the cache's folder is a file."""
    monkeypatch.chdir(place)

    def kshot(*arguments):
        return subprocess.run([sys.executable, "-m", "kshot", *arguments], capture_output=True, text=True)

    with_cache = kshot("predict", "head.safetensors", "drawings/new").stdout
    monkeypatch.setenv("KSHOT_CACHE", "/dev/null")
    fitted = kshot("fit", "drawings/photos", "-o", "new.safetensors", "--method", "loo_blend")
    predicted = kshot("predict", "new.safetensors", "drawings/new")
    assert predicted.stdout == with_cache
    for done in (fitted, predicted):
        assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
        assert "KSHOT_CACHE" in done.stderr


def test_what_a_head_holds_is_listed(kshot, place):
    done = kshot("ls", "head.safetensors")
    for words in (
        "6: birds (8), clocks (8)",
        "% of new pictures right",
        "LOO blend",
        "a photo of a {}.",
        "lite0 (",
        "20",
    ):
        assert words in done.stdout
    assert_refused(kshot("ls", "nowhere.safetensors"), "no head file")


def test_the_nearest_shots_and_another_encoder(kshot, place):
    some = str(next(Path("drawings/new").iterdir()))
    done = kshot("predict", "head.safetensors", some, "--nearest", "3")
    assert done.returncode == 0
    assert "nearest shot" in done.stdout
    refused = kshot("predict", "head.safetensors", some, "--backbone", "lite2")
    assert_refused(refused, "fitted on features of lite0", "weights_sha256")


def test_bad_input_is_one_sentence(kshot, place):
    kept, new = Path("head.safetensors").read_bytes(), ("drawings/photos", "-o", "new.safetensors")
    Path("bad.safetensors").write_text("nothing")
    for arguments, words in (
        (("fit", "nowhere"), "there is no folder nowhere"),
        (("fit", "drawings/photos"), "--force"),
        (("fit", *new, "--prompt", "a drawing"), "has no {}"),
        (("fit", *new, "--method", "clpa"), "Did you mean clap"),
        (("predict", "nowhere.safetensors", "x.png"), "no head file"),
        (("predict", "bad.safetensors", "x.png"), "not a kshot head file"),
        (("features", "sample", "drawings"), "not empty"),
        (("serve", "head.safetensors", "--no-token", "--host", "0.0.0.0"), "give a token"),
    ):
        assert_refused(kshot(*arguments), words)
    assert Path("head.safetensors").read_bytes() == kept


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("starlette", ("serve", "head.safetensors"), "serve"),
        ("onnx", ("export", "head.safetensors", "--onnx", "head.onnx", "--head-only"), "serve"),
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
def test_a_thousand_classes(tmp_path, kshot):
    """Two pictures of each, patterns that only their own class shares."""
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


def test_together_says_what_it_did_and_one_picture_is_predicted_alone(kshot, place):
    folder = sorted(str(path) for path in Path("drawings/photos").rglob("*.png"))
    alone = kshot("predict", "head.safetensors", folder[0], "--together", "--format", "json")
    assert "one by one: together needs 4 pictures, 1 can be read" in alone.stderr
    assert json.loads(alone.stdout)[0]["answer"]
    batch = kshot("predict", "head.safetensors", *folder, "--together", "--format", "json")
    assert batch.returncode == 0, batch.stderr
    assert len(json.loads(batch.stdout)) == len(folder)
    assert "one by one: " in batch.stderr or "together: hidden" in batch.stderr
    refused = kshot("predict", "head.safetensors", folder[0], "--together", "--nearest", "2")
    assert_refused(refused, "Leave one of them out")
