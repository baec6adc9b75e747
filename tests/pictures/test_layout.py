"""Folders that are not quite what was meant: recognised, told, or refused before anything is learnt."""

import shutil

import numpy as np
import pytest
from PIL import Image

from colours import COLOURS, shade
from kshot.errors import InputError
from kshot.pictures.fit import fit_folder


def divided(root, first, second, per_class=4):
    """Two folders with the classes in each, every picture another one."""
    rng = np.random.default_rng(3)
    for part in (first, second):
        for colour in COLOURS:
            for number in range(per_class):
                shade(root / part / colour / f"{number}.png", colour, rng)
    return root


@pytest.mark.parametrize(("first", "second"), [("train", "test"), ("Training", "val")])
def test_train_teaches_and_test_tests(tmp_path, colours, first, second):
    root = divided(tmp_path / "both", first, second)
    shade(root / second / "red" / "wrong.png", "green", np.random.default_rng(4))
    shutil.copy(root / first / "red" / "0.png", root / second / "red" / "seen.png")
    fitted = fit_folder(root, encoder=colours)
    assert set(fitted.head.about.classes) == set(COLOURS)
    assert len(fitted.head.about.shot_names) == 12
    # Thirteen new pictures, one of them in the wrong folder; the copy of a taught one does not count.
    assert fitted.tested.value == pytest.approx(12 / 13)
    assert any("also taught" in line for line in fitted.unreadable)
    assert any(first in note and second in note for note in fitted.notes)


def test_a_test_folder_with_other_classes_is_refused(tmp_path, colours):
    root = divided(tmp_path / "both", "train", "test")
    (root / "test" / "red").rename(root / "test" / "crimson")
    with pytest.raises(InputError, match="not taught: crimson"):
        fit_folder(root, encoder=colours)


@pytest.mark.parametrize("names", [("photos", "new"), ("Images", "raw")])
def test_one_level_too_high_names_the_likely_folder(tmp_path, colours, names):
    root = divided(tmp_path / "pets", *names)
    shutil.rmtree(root / names[1] / "red")
    with pytest.raises(InputError, match=rf"one level too high.*Did you mean {root / names[0]}\?"):
        fit_folder(root, encoder=colours)


def test_a_single_folder_of_classes_is_one_level_too_high(tmp_path, shades, colours):
    (tmp_path / "above").mkdir()
    shutil.move(shades, tmp_path / "above" / "shades")
    with pytest.raises(InputError, match=r"Did you mean .*above/shades\?"):
        fit_folder(tmp_path / "above", encoder=colours)


def test_classes_with_folders_inside_are_classes(shades, colours):
    for part in ("near", "far"):
        (shades / "red" / part).mkdir()
    for number, part in ((0, "near"), (1, "near"), (2, "far"), (3, "far")):
        shutil.move(shades / "red" / f"{number}.png", shades / "red" / part)
    fitted = fit_folder(shades, encoder=colours)
    assert len(fitted.head.about.shot_names) == 12
    assert fitted.notes == ()


def test_names_of_collections_and_loose_pictures_are_told(shades, colours):
    (shades / "red").rename(shades / "photos")
    shade(shades / "loose.png", "red", np.random.default_rng(5))
    notes = " ".join(fit_folder(shades, encoder=colours).notes)
    assert "photos looks like a collection" in notes
    assert "loose.png" in notes


def test_a_majority_that_explains_the_accuracy_is_told(tmp_path, colours):
    rng = np.random.default_rng(6)
    for number in range(14):
        shade(tmp_path / "pets" / "red" / f"{number}.png", "red", rng)
    for number in range(2):
        shade(tmp_path / "pets" / "green" / f"{number}.png", "red", rng)
    notes = " ".join(fit_folder(tmp_path / "pets", encoder=colours).notes)
    assert "always answering red would be right for 88 %" in notes


@pytest.mark.parametrize("suffix", ["heic", "avif"])
def test_pictures_of_phones_are_read(shades, colours, suffix):
    import pillow_heif

    pillow_heif.register_heif_opener()
    path = shades / "red" / f"phone.{suffix}"
    Image.open(shades / "red" / "0.png").convert("RGB").resize((64, 64)).save(path)
    fitted = fit_folder(shades, encoder=colours)
    assert f"red/phone.{suffix}" in fitted.head.about.shot_names
    path.write_bytes(path.read_bytes()[:100])
    assert any(path.name in line for line in fit_folder(shades, encoder=colours).unreadable)


def test_a_head_is_not_replaced_unasked(kshot, sample):
    (sample / "head.safetensors").write_bytes(b"precious")
    done = kshot("fit", str(sample / "photos"), "-o", str(sample / "head.safetensors"))
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (sample / "head.safetensors").read_bytes() == b"precious"
