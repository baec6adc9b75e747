"""Heads that grow and shrink without their old pictures: as if fitted on all at once."""

import shutil
from dataclasses import asdict

import numpy as np
import pytest

from colours import ColourEncoder, shade
from kshot.encode.protocol import PromptFeatures
from kshot.errors import InputError
from kshot.methods.headfile import save_head
from kshot.pictures.fit import change_head
from kshot.pictures.head import PictureHead, mean_norm


class Uneven(ColourEncoder):
    """Texts of different lengths: the prompts of red, green and blue have 17, 19 and 18 letters."""

    def encode_prompts(self, prompts):
        lengths = [float(len(prompt)) for prompt in prompts]
        return PromptFeatures(super().encode_prompts(prompts).unit, np.array(lengths, np.float32))


def by_class(head):
    """Shots and text of each class, in an order of their own."""
    return {
        name: (sorted(map(bytes, head.shots.X[head.shots.y == label])), head.shots.text[label].tobytes())
        for label, name in enumerate(head.about.classes)
    }


def test_added_later_is_as_if_there_from_the_beginning(shades, fit, tmp_path):
    first, later = tmp_path / "first", tmp_path / "later"
    for part in (first, later):
        shutil.copytree(shades, part)
    shutil.rmtree(first / "blue")
    shutil.rmtree(later / "green")
    (first / "red" / "3.png").unlink()
    fit(first, encoder=Uneven()).head.save(tmp_path / "head.safetensors")
    shutil.rmtree(first)
    fitted = change_head(PictureHead.load(tmp_path / "head.safetensors"), Uneven(), later)
    whole = fit(shades, encoder=Uneven()).head
    assert by_class(fitted.head) == by_class(whole)
    assert mean_norm(fitted.head.about.text_norms) == mean_norm(whole.about.text_norms) == 18
    assert set(fitted.copies) == {f"red/{number}.png" for number in range(3)}
    order = [whole.about.classes.index(name) for name in fitted.head.about.classes]
    queries = whole.shots.X
    np.testing.assert_allclose(fitted.head.probabilities(queries), whole.probabilities(queries)[:, order], atol=1e-3)


def test_dropped_is_as_if_never_there(shades, fit):
    fitted = change_head(fit(shades, encoder=Uneven()).head, drop=["green"])
    shutil.rmtree(shades / "green")
    whole = fit(shades, encoder=Uneven()).head
    assert by_class(fitted.head) == by_class(whole)
    for name in ("classes", "text_norms", "shot_names", "shot_sha256"):
        assert getattr(fitted.head.about, name) == getattr(whole.about, name)
    assert fitted.head.about.text_norms == (18, 17)
    assert fitted.head.thumbnails == whole.thumbnails
    np.testing.assert_allclose(fitted.head.probabilities(whole.shots.X), whole.probabilities(whole.shots.X), atol=1e-6)


def test_a_file_that_keeps_the_mean_of_the_norms_alone_is_read(shades, fit, tmp_path):
    head = fit(shades, encoder=Uneven()).head
    about = asdict(head.about) | {"text_norm": 18.0}
    del about["text_norms"]
    arrays = {"X": head.shots.X, "y": head.shots.y, "text": head.shots.text}
    arrays |= {"thumbnails": np.zeros(0, np.uint8), "thumbnail_ends": np.zeros(len(head.shots.y), np.int64)}
    save_head(head.head, tmp_path / "old", method="loo_blend", beside=arrays, kind="pictures", about=about)
    assert PictureHead.load(tmp_path / "old").about.text_norms == (18.0,) * 3


def test_what_cannot_be_changed_is_said(shades, fit):
    head = fit(shades).head
    with pytest.raises(InputError, match="Did you mean green"):
        change_head(head, drop=["gren"])
    with pytest.raises(InputError, match="at least two"):
        change_head(head, drop=["green", "blue"])


def test_the_command_adds_drops_and_replaces_nothing_unasked(kshot, shades, fit, tmp_path):
    """Dropping needs no encoder, so a head of an unknown one will do."""
    fit(shades).head.save(tmp_path / "head.safetensors")
    done = kshot("change", "head.safetensors", "--drop", "red", "-o", "less.safetensors")
    assert done.returncode == 0, done.stderr
    assert PictureHead.load("less.safetensors").about.classes == ("blue", "green")
    for arguments, words in (
        (("-o", "new.safetensors"), "--add FOLDER"),
        (("--drop", "red", "-o", "less.safetensors"), "--force"),
    ):
        refused = kshot("change", "head.safetensors", *arguments)
        assert refused.returncode == 2
        assert words in refused.stderr


def test_a_folder_of_one_class_can_be_added(shades, fit, colours, tmp_path):
    shade(tmp_path / "more" / "red" / "new.png", "red", np.random.default_rng(5))
    grown = change_head(fit(shades).head, colours, tmp_path / "more").head
    assert grown.about.shot_names[-1] == "red/new.png"
    assert grown.shots.counts.tolist() == [4, 4, 5]
