"""Folders that are not quite what was meant: recognised, told, or refused before anything is learnt."""

import shutil

import numpy as np
import pytest

from colours import COLOURS, shade, write_shades
from kshot.errors import InputError


def divided(root, first, second):
    """Two folders with four pictures of each class, every picture another one."""
    rng = np.random.default_rng(3)
    for part in (first, second):
        write_shades(root / part, rng)
    return root


@pytest.mark.parametrize(("first", "second"), [("train", "test"), ("Training", "val")])
def test_train_teaches_and_test_tests(tmp_path, fit, first, second):
    root = divided(tmp_path / "both", first, second)
    shade(root / second / "red" / "wrong.png", "green", np.random.default_rng(4))
    shutil.copy(root / first / "red" / "0.png", root / second / "red" / "seen.png")
    fitted = fit(root)
    assert set(fitted.head.about.classes) == set(COLOURS)
    assert len(fitted.head.about.shot_names) == 12
    # Thirteen new pictures, one of them in the wrong folder; the copy of a training picture does not count.
    assert fitted.tested.value == pytest.approx(12 / 13)
    assert any("also training pictures" in line for line in fitted.unreadable)
    assert any(first in note and second in note for note in fitted.notes)
    (root / second / "red").rename(root / second / "crimson")
    with pytest.raises(InputError, match="without training pictures: crimson"):
        fit(root)


@pytest.mark.parametrize("names", [("photos", "new"), ("Images", "raw")])
def test_one_level_too_high_names_the_likely_folder(tmp_path, fit, names):
    root = divided(tmp_path / "pets", *names)
    shutil.rmtree(root / names[1] / "red")
    with pytest.raises(InputError, match=rf"one level too high.*Did you mean {root / names[0]}\?"):
        fit(root)
    shutil.rmtree(root / names[1])
    with pytest.raises(InputError, match=rf"Did you mean {root / names[0]}\?"):
        fit(root)


def test_classes_with_folders_inside_are_classes(shades, fit):
    for number, part in ((0, "near"), (1, "near"), (2, "far"), (3, "far")):
        (shades / "red" / part).mkdir(exist_ok=True)
        shutil.move(shades / "red" / f"{number}.png", shades / "red" / part)
    fitted = fit(shades)
    assert len(fitted.head.about.shot_names) == 12
    assert fitted.notes == ()


def test_names_of_collections_and_loose_pictures_are_told(shades, fit):
    (shades / "red").rename(shades / "photos")
    shade(shades / "loose.png", "red", np.random.default_rng(5))
    notes = " ".join(fit(shades).notes)
    assert "photos looks like a collection" in notes
    assert "loose.png" in notes


def test_a_majority_that_explains_the_accuracy_is_told(tmp_path, fit):
    rng = np.random.default_rng(6)
    for label, count in (("red", 14), ("green", 2)):
        for number in range(count):
            shade(tmp_path / "pets" / label / f"{number}.png", "red", rng)
    assert "always answering red would be right for 88 %" in " ".join(fit(tmp_path / "pets", method="ncm").notes)
