"""From a folder of pictures to a head: what is learnt, what is refused, what is said."""

import io
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from colours import ColourEncoder, shade
from kshot.errors import InputError
from kshot.pictures.advice import advise
from kshot.pictures.encoded import encode_files
from kshot.pictures.fit import fit_folder
from kshot.pictures.head import PictureHead
from kshot.pictures.held_out import Interval
from kshot.pictures.predict import NONE, evidence, judge_picture, nearest_shots, predict_files


def test_a_folder_becomes_a_head_that_predicts(shades, colours, tmp_path):
    fitted = fit_folder(shades, encoder=colours)
    shade(tmp_path / "new.png", "green", np.random.default_rng(9))
    fitted.head.save(tmp_path / "head.safetensors")
    loaded = PictureHead.load(tmp_path / "head.safetensors")
    (one,) = predict_files(loaded, [tmp_path / "new.png"], encoder=colours)
    assert one.answer == "green"
    assert sum(guess.probability for guess in one.top) == pytest.approx(1)
    assert loaded.about == fitted.head.about
    assert loaded.thumbnails == fitted.head.thumbnails
    np.testing.assert_array_equal(loaded.head.coef_, fitted.head.head.coef_)


def test_another_encoder_is_refused(shades, colours, tmp_path):
    head = fit_folder(shades, encoder=colours).head
    with pytest.raises(InputError, match="differs in weights_sha256"):
        head.check_encoder(ColourEncoder("second"))
    head.check_encoder(ColourEncoder("first"))


def test_pictures_are_encoded_once(shades, colours, monkeypatch):
    first = [one.feature for one in encode_files(colours, sorted(shades.rglob("*.png")))]

    def never(self, batch):
        raise AssertionError("the cache was not used")

    monkeypatch.setattr(ColourEncoder, "encode_images", never)
    again = [one.feature for one in encode_files(colours, sorted(shades.rglob("*.png")))]
    np.testing.assert_array_equal(first, again)


def test_difficult_pictures_work_or_are_listed(shades, colours):
    rng = np.random.default_rng(1)
    shade(shades / "red" / "cmyk.jpg", "red", rng)
    Image.open(shades / "red" / "cmyk.jpg").convert("CMYK").save(shades / "red" / "cmyk.jpg")
    Image.open(shades / "red" / "0.png").convert("L").save(shades / "red" / "grey.png")
    frames = [Image.open(shades / "red" / f"{n}.png") for n in range(3)]
    frames[0].save(shades / "red" / "moving.gif", save_all=True, append_images=frames[1:])
    (shades / "red" / "broken.png").write_bytes((shades / "red" / "0.png").read_bytes()[:200])
    (shades / "red" / "empty.jpg").write_bytes(b"")
    (shades / "red" / "text.jpg").write_text("not a picture")
    Image.new("RGB", (2000, 2)).save(shades / "red" / "thin.png")
    shutil.copy(shades / "red" / "0.png", shades / "red" / "copy.png")
    fitted = fit_folder(shades, encoder=colours)
    used = {Path(name).name for name in fitted.head.about.shot_names if name.startswith("red/")}
    assert used == {"0.png", "1.png", "2.png", "3.png", "cmyk.jpg", "grey.png", "moving.gif"}
    assert len(fitted.unreadable) == 4
    for name in ("broken.png", "empty.jpg", "text.jpg", "thin.png"):
        assert sum(name in line for line in fitted.unreadable) == 1
    assert not any(" object at " in line for line in fitted.unreadable)
    assert fitted.copies == ("red/copy.png",)


def test_a_photo_is_turned_as_its_camera_noted(tmp_path, colours):
    """Upper half white: turned by EXIF, the white half is on another side, and the thumbnail shows it."""
    picture = Image.new("RGB", (40, 40))
    picture.paste("white", (0, 0, 40, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "turned.jpg", exif=exif)
    (one,) = encode_files(colours, [tmp_path / "turned.jpg"])
    seen = np.asarray(Image.open(io.BytesIO(one.thumbnail)).convert("L"))
    assert seen[:, -10:].mean() > 240
    assert seen[:, :10].mean() < 15


def test_sixteen_bit_greys_are_scaled(tmp_path, colours):
    ramp = np.linspace(0, 65535, 64 * 64).reshape(64, 64).astype(np.uint16)
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    (one,) = encode_files(colours, [tmp_path / "ramp.png"])
    assert np.asarray(Image.open(io.BytesIO(one.thumbnail)).convert("L")).mean() == pytest.approx(127, abs=2)


@pytest.mark.parametrize("fractions", [True, False])
def test_greys_of_32_bits_are_scaled_or_refused(tmp_path, colours, fractions):
    """A fraction's white is 1; a whole number's is unknown, and so is that of fractions beyond 1."""
    ramp = np.linspace(0, 1, 64 * 64).reshape(64, 64)
    known = ramp.astype(np.float32) if fractions else (ramp * 65535).astype(np.uint16)
    unknown = 40 * known if fractions else (ramp * 70_000).astype(np.int32)
    Image.fromarray(known).save(tmp_path / "known.tif")
    Image.fromarray(unknown).save(tmp_path / "unknown.tif")
    seen, refused = encode_files(colours, [tmp_path / "known.tif", tmp_path / "unknown.tif"])
    shown = np.asarray(Image.open(io.BytesIO(seen.thumbnail)).convert("L"))
    np.testing.assert_allclose(shown, ramp * 255, atol=8)
    for words in ("unknown.tif", "white is unknown", "8 or 16 bits"):
        assert words in str(refused)


def test_greys_of_a_portable_map_are_scaled(tmp_path, colours):
    """Pillow holds its 16 bits in 32."""
    ramp = np.linspace(0, 65535, 64 * 64)
    (tmp_path / "ramp.ppm").write_bytes(b"P5 64 64 65535\n" + ramp.astype(">u2").tobytes())
    (one,) = encode_files(colours, [tmp_path / "ramp.ppm"])
    assert np.asarray(Image.open(io.BytesIO(one.thumbnail)).convert("L")).mean() == pytest.approx(127, abs=2)


def test_pictures_that_are_not_looked_at_are_listed(shades, colours, tmp_path):
    (shades / "red" / "phone").mkdir()
    for name in ("phone/1.CR3", "camera.cr2", "note.txt", "Thumbs.db", ".hidden.cr2"):
        (shades / "red" / name).write_bytes(b"nothing")
    (shades / "red" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    (shades / "red" / "gone").symlink_to(tmp_path / "nowhere")
    (shades / "yellow").symlink_to(tmp_path / "nowhere")
    told = fit_folder(shades, encoder=colours).unreadable
    assert {Path(line.split(": ")[0].split(" is ")[0]).name for line in told} == {
        "yellow",
        "camera.cr2",
        "gone.png",
        "1.CR3",
    }
    assert f"{shades}/red/phone/1.CR3: CR3 is not read; convert it to JPEG or PNG." in told
    (shades / "new").mkdir()
    (shades / "new" / "1.nef").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"no pictures in new.*NEF is not read"):
        fit_folder(shades, encoder=colours)


def test_one_class_and_empty_classes_are_refused(tmp_path, shades, colours):
    shutil.copytree(shades / "red", tmp_path / "one" / "red")
    with pytest.raises(InputError, match="at least two folders"):
        fit_folder(tmp_path / "one", encoder=colours)
    (shades / "empty").mkdir()
    with pytest.raises(InputError, match="no pictures in empty"):
        fit_folder(shades, encoder=colours)
    (shades / "empty" / "zero.png").write_bytes(b"")
    with pytest.raises(InputError, match="no readable picture is left for empty"):
        fit_folder(shades, encoder=colours)


def test_single_pictures_are_learnt_from_but_not_measured(shades, colours):
    for path in list((shades / "blue").iterdir())[1:]:
        path.unlink()
    found = fit_folder(shades, encoder=colours).assessment
    assert found.measured == 8
    assert found.per_class[0] is None
    for path in [*(shades / "red").iterdir(), *(shades / "green").iterdir()]:
        if path.stem != "0":
            path.unlink()
    found = fit_folder(shades, encoder=colours).assessment
    assert found.accuracy is None
    assert "cannot be measured" in found.verdict


def test_names_with_unicode_and_slashes(tmp_path, shades, colours):
    (shades / "red").rename(shades / "vérmilion ✿")
    names = tmp_path / "names.txt"
    names.write_text("green=green/lime [bold]\n")
    head = fit_folder(shades, encoder=colours, names=names).head
    assert head.about.classes == ("blue", "green/lime [bold]", "vérmilion ✿")
    head.save(tmp_path / "head.safetensors")
    assert PictureHead.load(tmp_path / "head.safetensors").about.classes == head.about.classes
    names.write_text("gren=x\n")
    with pytest.raises(InputError, match="Did you mean green"):
        fit_folder(shades, encoder=colours, names=names)


def test_names_are_compared_however_they_were_written(tmp_path, shades, colours):
    """An accent as one character or as two, on either side, and a file that begins with a byte order mark."""
    one, two = "vérmilion", "ve\u0301rmilion"
    names = tmp_path / "names.txt"
    for folder, written in ((one, two), (two, one)):
        (shades / "red").rename(shades / folder)
        names.write_text(f"{written}=bright red\n", encoding="utf-8-sig")
        classes = fit_folder(shades, encoder=colours, names=names).head.about.classes
        assert classes == ("blue", "green", "bright red")
        (shades / folder).rename(shades / "red")


@pytest.mark.parametrize("name", [b"red/caf\xe9.png", b"caf\xe9/0.png"])
def test_names_that_are_not_utf8_are_told_before_encoding(shades, colours, monkeypatch, name):
    strange = Path(os.fsdecode(os.fsencode(shades) + b"/" + name))
    strange.parent.mkdir(exist_ok=True)
    shutil.copy(shades / "red" / "0.png", strange)

    def never(self, batch):
        raise AssertionError("it was encoded first")

    monkeypatch.setattr(ColourEncoder, "encode_images", never)
    with pytest.raises(InputError) as told:
        fit_folder(shades, encoder=colours)
    assert "caf\\xe9" in str(told.value)
    assert "Rename" in str(told.value)
    str(told.value).encode()


def test_the_verdict_says_which_is_better(shades, colours):
    found = fit_folder(shades, encoder=colours).assessment

    def verdict(value, low, high):
        return replace(found, over_zero_shot=Interval(value, low, high)).verdict

    assert verdict(0.2, 0.1, 0.3).startswith("better than zero-shot by 20.0 points [10.0, 30.0]")
    assert "zero-shot is as good here" in verdict(0.1, -0.1, 0.3)
    assert "zero-shot is as good here" in verdict(0.0, 0.0, 0.0)
    worse = verdict(-0.273, -0.536, -0.009)
    assert worse.startswith("zero-shot is better here by 27.3 points [0.9, 53.6]: ")
    assert "--method zero_shot" in worse
    unsure = verdict(-0.273, -0.549, 0.003)
    assert unsure.startswith("zero-shot is better here by 27.3 points [-0.3, 54.9], although 12 pictures cannot")
    assert "--method zero_shot" in unsure


def test_a_wrong_label_and_twins_are_noticed(shades, colours):
    rng = np.random.default_rng(3)
    shade(shades / "red" / "wrong.png", "blue", rng)
    shutil.copy(shades / "green" / "1.png", shades / "red" / "twin.png")
    fitted = fit_folder(shades, encoder=colours)
    names = fitted.head.about.shot_names
    assert "red/wrong.png" in {names[one.row] for one in fitted.assessment.suspects}
    assert ("green/1.png", "red/twin.png") in {(names[t.first], names[t.second]) for t in fitted.twins}


def test_evidence_adds_up_to_the_logits(shades, colours):
    head = fit_folder(shades, encoder=colours).head
    feature = head.shots.X[5]
    rows = evidence(head, feature, count=3)
    logits = np.log(head.probabilities(feature[None])[0])
    logits = dict(zip(head.about.classes, logits - logits.mean(), strict=True))
    for one in rows:
        assert one.text + one.pictures == pytest.approx(logits[one.name], abs=1e-4)
    assert nearest_shots(head, feature)[0].row == 5


def test_below_the_threshold_it_is_none_of_these(shades, colours):
    head = fit_folder(shades, encoder=colours).head
    assert judge_picture(head, "x", head.shots.X[0], threshold=1.01).answer == NONE
    assert judge_picture(head, "x", head.shots.X[0], threshold=0.0).answer == "blue"


def test_advice_follows_the_shots_and_refuses_oracles():
    chosen = {shots: advise(np.full(5, shots)) for shots in (1, 4, 16)}
    assert chosen[1].method in ("clap", "zero_shot", "gauss_probe")
    assert {chosen[4].method, chosen[16].method} <= {"clap", "lpp", "fold_gda", "gauss_probe"}
    assert advise(np.full(5, 4), "loo_blend").method == "loo_blend"
    with pytest.raises(InputError, match="data that you do not have"):
        advise(np.full(5, 4), "oracle_lambda")
