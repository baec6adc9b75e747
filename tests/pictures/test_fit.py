"""From a folder of pictures to a head: what is learnt, what is refused, what is said."""

import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from colours import ColourEncoder, shade, write_shades
from kshot.errors import InputError
from kshot.pictures.advice import EVIDENCE, advise
from kshot.pictures.encoded import encode_files
from kshot.pictures.head import PictureHead
from kshot.pictures.held_out import Interval
from kshot.pictures.predict import UNSURE, evidence, nearest_shots, predict_feature, predict_files


@pytest.fixture
def no_encoding(monkeypatch):
    def never(self, batch):
        raise AssertionError("pictures were encoded")

    return lambda: monkeypatch.setattr(ColourEncoder, "encode_images", never)


def seen(encoded):
    """The grey values of a thumbnail."""
    return np.asarray(Image.open(io.BytesIO(encoded.thumbnail)).convert("L"))


def test_a_folder_becomes_a_head_that_predicts(shades, fit, colours, tmp_path):
    fitted = fit(shades, method="auto")
    shade(tmp_path / "new.png", "green", np.random.default_rng(9))
    fitted.head.save(tmp_path / "head.safetensors")
    loaded = PictureHead.load(tmp_path / "head.safetensors")
    (one,) = predict_files(loaded, [tmp_path / "new.png"], encoder=colours)
    assert one.answer == "green"
    assert sum(guess.probability for guess in one.top) == pytest.approx(1)
    assert loaded.about == fitted.head.about
    assert loaded.thumbnails == fitted.head.thumbnails
    np.testing.assert_array_equal(loaded.head.coef_, fitted.head.head.coef_)


def test_another_encoder_is_refused(shades, fit):
    head = fit(shades).head
    with pytest.raises(InputError, match="differs in weights_sha256"):
        head.check_encoder(ColourEncoder("second"))
    head.check_encoder(ColourEncoder("first"))


def test_pictures_are_encoded_once(shades, colours, no_encoding):
    first = [one.feature for one in encode_files(colours, sorted(shades.rglob("*.png")))]
    no_encoding()
    again = [one.feature for one in encode_files(colours, sorted(shades.rglob("*.png")))]
    np.testing.assert_array_equal(first, again)


def test_a_photo_is_turned_as_its_camera_noted(tmp_path, colours):
    """Upper half white: turned by EXIF, the white half is on another side, and the thumbnail shows it."""
    picture = Image.new("RGB", (40, 40))
    picture.paste("white", (0, 0, 40, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "turned.jpg", exif=exif)
    (one,) = encode_files(colours, [tmp_path / "turned.jpg"])
    assert seen(one)[:, -10:].mean() > 240
    assert seen(one)[:, :10].mean() < 15


RAMP = np.linspace(0, 1, 64 * 64).reshape(64, 64)
SIXTEEN_BITS = (RAMP * 65535).astype(np.uint16)


@pytest.mark.parametrize(
    ("suffix", "known", "unknown"),
    [
        ("png", SIXTEEN_BITS, None),
        ("tif", SIXTEEN_BITS, (RAMP * 70_000).astype(np.int32)),
        ("tif", RAMP.astype(np.float32), 40 * RAMP.astype(np.float32)),
        ("ppm", None, None),
    ],
    ids=["16 bits", "whole numbers", "fractions", "portable map"],
)
def test_greys_of_more_than_eight_bits_are_scaled_or_refused(tmp_path, colours, suffix, known, unknown):
    """A fraction's white is 1; that of 32-bit whole numbers and of fractions beyond 1 is unknown."""
    path = tmp_path / f"known.{suffix}"
    if known is None:
        path.write_bytes(b"P5 64 64 65535\n" + SIXTEEN_BITS.astype(">u2").tobytes())
    else:
        Image.fromarray(known).save(path)
    (one,) = encode_files(colours, [path])
    np.testing.assert_allclose(seen(one), RAMP * 255, atol=8)
    if unknown is not None:
        Image.fromarray(unknown).save(tmp_path / "unknown.tif")
        (refused,) = encode_files(colours, [tmp_path / "unknown.tif"])
        for words in ("unknown.tif", "white is unknown", "8 or 16 bits"):
            assert words in str(refused)


def test_pictures_that_are_not_looked_at_are_listed(shades, fit, tmp_path):
    (shades / "red" / "phone").mkdir()
    for name in ("phone/1.CR3", "camera.cr2", "note.txt", "Thumbs.db", ".hidden.cr2"):
        (shades / "red" / name).write_bytes(b"nothing")
    for link in ("red/gone.png", "red/gone", "yellow"):
        (shades / link).symlink_to(tmp_path / "nowhere")
    told = fit(shades).unreadable
    named = {Path(line.split(": ")[0].split(" is ")[0]).name for line in told}
    assert named == {"yellow", "camera.cr2", "gone.png", "1.CR3"}
    assert f"{shades}/red/phone/1.CR3: CR3 is not read; convert it to JPEG or PNG." in told
    (shades / "new").mkdir()
    (shades / "new" / "1.nef").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"no pictures in new.*NEF is not read"):
        fit(shades)


def test_one_class_and_empty_classes_are_refused(tmp_path, shades, fit):
    shutil.copytree(shades / "red", tmp_path / "one" / "red")
    with pytest.raises(InputError, match="at least two folders"):
        fit(tmp_path / "one")
    (shades / "empty").mkdir()
    with pytest.raises(InputError, match="no pictures in empty"):
        fit(shades)
    (shades / "empty" / "zero.png").write_bytes(b"")
    with pytest.raises(InputError, match="no readable picture is left for empty"):
        fit(shades)


def test_single_pictures_are_learnt_from_but_not_measured(shades, fit):
    for path in list((shades / "blue").iterdir())[1:]:
        path.unlink()
    found = fit(shades, method="ncm").assessment
    assert (found.measured, found.per_class[0]) == (8, None)
    for path in [*(shades / "red").iterdir(), *(shades / "green").iterdir()]:
        if path.stem != "0":
            path.unlink()
    found = fit(shades, method="ncm").assessment
    assert found.accuracy is None
    for words in ("one picture per class", "not calibrated", "no answer is called unsure"):
        assert words in found.verdict
    assert found.threshold is None


def test_names_with_unicode_and_slashes(tmp_path, shades, fit):
    (shades / "red").rename(shades / "vérmilion ✿")
    names = tmp_path / "names.txt"
    names.write_text("green=green/lime [bold]\n")
    head = fit(shades, names=names).head
    assert head.about.classes == ("blue", "green/lime [bold]", "vérmilion ✿")
    head.save(tmp_path / "head.safetensors")
    assert PictureHead.load(tmp_path / "head.safetensors").about.classes == head.about.classes
    for text, words in (("gren=x\n", "Did you mean green"), ("green\n", "FOLDER=NAME"), ("green=blue\n", "share the")):
        names.write_text(text)
        with pytest.raises(InputError, match=words):
            fit(shades, names=names)


def test_names_are_compared_however_they_were_written(tmp_path, shades, fit):
    """An accent as one character or as two, on either side, and a file that begins with a byte order mark."""
    one, two = "vérmilion", "ve\u0301rmilion"
    names = tmp_path / "names.txt"
    for folder, written in ((one, two), (two, one)):
        (shades / "red").rename(shades / folder)
        names.write_text(f"{written}=bright red\n", encoding="utf-8-sig")
        assert fit(shades, names=names).head.about.classes == ("blue", "green", "bright red")
        (shades / folder).rename(shades / "red")


@pytest.mark.parametrize("name", [b"red/caf\xe9.png", b"caf\xe9/0.png"])
def test_names_that_are_not_utf8_are_told_before_encoding(shades, fit, no_encoding, name):
    strange = Path(os.fsdecode(os.fsencode(shades) + b"/" + name))
    strange.parent.mkdir(exist_ok=True)
    shutil.copy(shades / "red" / "0.png", strange)
    no_encoding()
    with pytest.raises(InputError, match=r"caf\\xe9.*Rename") as told:
        fit(shades)
    str(told.value).encode()


def test_the_verdict_says_which_is_better(shades, fit):
    found = fit(shades).assessment

    def verdict(value, low, high):
        return replace(found, over_zero_shot=Interval(value, low, high)).verdict

    assert "better than the names alone (zero-shot) by 20.0 points [10.0, 30.0]" in verdict(0.2, 0.1, 0.3)
    worse = verdict(-0.273, -0.536, -0.009)
    assert "names alone (zero-shot) are better by 27.3 points [0.9, 53.6]: " in worse
    assert "--method zero_shot" in worse
    for value, low, high in ((0.132, -0.019, 0.283), (0.0, -0.2, 0.2), (-0.1, -0.3, 0.1)):
        assert "12 pictures cannot tell whether" in verdict(value, low, high)


def test_the_names_alone_are_not_compared_with_themselves(shades, fit):
    found = fit(shades, method="zero_shot").assessment
    assert (found.verdict, found.over_zero_shot, found.next_shot) == ("", None, None)
    assert found.accuracy.value == pytest.approx(found.zero_shot.value, abs=0.05)


def test_a_wrong_label_and_twins_are_noticed(shades, fit):
    shade(shades / "red" / "wrong.png", "blue", np.random.default_rng(3))
    shutil.copy(shades / "green" / "1.png", shades / "red" / "twin.png")
    fitted = fit(shades)
    names = fitted.head.about.shot_names
    assert "red/wrong.png" in {names[one.row] for one in fitted.assessment.suspects}
    assert ("green/1.png", "red/twin.png") in {
        (names[first], names[second]) for first, second in fitted.near_duplicates
    }


def test_evidence_adds_up_to_the_logits(shades, fit):
    head = fit(shades).head
    feature = head.shots.X[5]
    logits = np.log(head.probabilities(feature[None])[0])
    logits = dict(zip(head.about.classes, logits - logits.mean(), strict=True))
    for one in evidence(head, feature):
        assert one.text + one.pictures == pytest.approx(logits[one.name], abs=1e-4)
    assert nearest_shots(head, feature)[0].row == 5


def test_with_few_pictures_nothing_is_unsure_and_the_head_says_so(shades, fit):
    head = fit(shades).head
    between = head.shots.X.mean(axis=0)
    assert predict_feature(head, "x", between / np.linalg.norm(between)).sure
    assert "fewer than 19" in head.about.caveat
    for path in shades.glob("*/[123].png"):
        path.unlink()
    assert "not calibrated" in fit(shades, method="ncm").head.about.caveat


def test_a_picture_unlike_every_class_is_unsure(fit, tmp_path):
    head = fit(write_shades(tmp_path / "many", np.random.default_rng(0), 8)).head
    assert head.about.caveat == ""
    assert predict_feature(head, "x", head.shots.X[0]).answer == "blue"
    between = head.shots.X.mean(axis=0)
    assert predict_feature(head, "x", between / np.linalg.norm(between)).answer == UNSURE
    assert predict_feature(head, "x", head.shots.X[0], threshold=1.01).answer == UNSURE
    assert predict_feature(head, "x", head.shots.X[0], threshold=0.0).answer == "blue"


@pytest.mark.parametrize("shots", [1, 2, 4, 16])
def test_the_reason_says_what_the_evidence_says(shots):
    rows = json.loads(EVIDENCE.read_text())
    (row,) = [row for row in rows if row["kind"] == "all" and row["shots"] == shots]
    found = advise(np.full(5, shots))
    _, low, _ = row["lead"]["clap"]
    assert found.method == row["head"]
    assert f"over {row['datasets']} sets" in found.reason
    level = min(low, row["left_out"][1]) <= 0
    assert ("CLAP, which is simpler, may be as good (--method clap)" in found.reason) == level
    assert level == (shots == 2)


def test_a_wanted_method_is_taken_and_oracles_are_refused():
    assert advise(np.full(5, 4), "loo_blend").method == "loo_blend"
    with pytest.raises(InputError, match="data that you do not have"):
        advise(np.full(5, 4), "oracle_lambda")
