"""Fit a head on folders of pictures and assess it, or let it learn one more picture."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from kshot.encode.encoders import load_encoder
from kshot.encode.protocol import Encoder
from kshot.encode.sources.in_memory import dataset_in_memory
from kshot.errors import InputError, UndefinedError
from kshot.pictures.advice import AUTO, advise, check_method
from kshot.pictures.assess import Assessment, assess, near_duplicates
from kshot.pictures.encoded import ClassText, Encoded, encode_names, encode_readable, stacked_rows
from kshot.pictures.head import About, PictureHead, Setting, mean_norm
from kshot.pictures.held_out import MOST_FOLDS, Interval, Shots, wilson
from kshot.pictures.labels import labelled_photos
from kshot.pictures.photos import Folder, Photo, existing_folder, folder_layout, list_photos, listed
from kshot.pictures.transform import PROMPT
from kshot.progress import one_bar
from kshot.types import EncoderConstants

logger = logging.getLogger(__name__)

MOST_NAME = 200


class TrainAndTest(NamedTuple):
    """Pictures to learn from, pictures to test on if there are any, and notes for the user."""

    train: Folder
    test: Folder | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Fitted:
    """The head, its assessment, the accuracy on a test folder if there is one, and what was left out or noticed."""

    head: PictureHead
    assessment: Assessment
    notes: tuple[str, ...] = ()
    tested: Interval | None = None
    unreadable: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    near_duplicates: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LabelledPicture:
    """A picture with its class, and its feature; `name` is its path below the folder."""

    name: str
    label: str
    encoded: Encoded


def fit_folder(
    root: Any,
    *,
    backbone: str = "lite0",
    prompt: str = PROMPT,
    names: Path | None = None,
    labels: Path | None = None,
    method: str = AUTO,
    weights: Path | None = None,
    encoder: Encoder | None = None,
    device: str = "auto",
) -> Fitted:
    """Fit a head on ROOT/CLASS/…, on ROOT/train with ROOT/test to test it, or on the pictures of a CSV file of
    `labels`.

    ROOT may also be a dataset in memory (`kshot.encode_dataset` names them), and `encoder` one in memory. Pictures that
    cannot be read and copies of a picture are left out and listed; a class without readable pictures is an error.
    """
    check_method(method)
    given = _train_and_test(root, names, labels)
    encoder = encoder or load_encoder(backbone, weights, device)
    backbone = encoder.backbone or backbone
    if not encoder.text:
        raise InputError(f"{backbone} has no text tower, so class names cannot help. Choose lite0 or a CLIP.")
    setting = Setting(backbone, encoder.facts(), encoder.logit_scale, prompt, method)
    pictures = len(given.train.photos) + len(given.test.photos if given.test else ())
    with one_bar("fit", pictures + len(given.train.classes) + MOST_FOLDS):
        fitted = _learnt_folder(given.train, encoder, setting)
        tested, untested = _tested(fitted.head, encoder, given.test)
    notes, unreadable = (*given.notes, *fitted.notes), (*fitted.unreadable, *untested)
    return replace(fitted, notes=notes, tested=tested, unreadable=unreadable)


def fit_pictures(data: Any, **options) -> PictureHead:
    """Fit a head on pictures: `fit_pictures("PHOTOS").save("head.safetensors")`. Pictures that cannot be read are left
    out with a warning.

    Parameters
    ----------
    data : folder or dataset
        PHOTOS/CLASS/picture, a `datasets.Dataset` or `DatasetDict`, a torchvision dataset without a transform, a
        pandas frame with the columns path and label, or a dict of these by split.
    options :
        `backbone` (as `--backbone` takes it) or `encoder`, an `Encoder`; `prompt`, `method`, `names`, `labels`,
        `weights` and `device`, as `kshot fit` takes them.
    """
    fitted = fit_folder(data, **options)
    for line in (*fitted.notes, *fitted.unreadable):
        logger.warning(line)
    return fitted.head


def _train_and_test(root: Any, names: Path | None, labels: Path | None) -> TrainAndTest:
    if not isinstance(root, str | Path):
        return _from_memory(root)
    if labels is not None:
        return TrainAndTest(labelled_photos(Path(root), labels), None, ())
    train, test, notes = folder_layout(existing_folder(Path(root)))
    return TrainAndTest(list_photos(train, names), test and list_photos(test, names), notes)


def _from_memory(data: Any) -> TrainAndTest:
    """A dataset in memory; its test split tests, an official validation split is left alone."""
    held = dataset_in_memory(data)
    by_part: dict[str, list[Photo]] = {}
    for row in held.rows:
        by_part.setdefault(row.part, []).append(Photo(row.picture, str(row.picture), held.classes[row.label]))
    folders = {}
    for part, photos in by_part.items():
        present = {photo.label for photo in photos}
        folders[part] = Folder(tuple(name for name in held.classes if name in present), tuple(photos), ())
    notes = ("the validation split is not used.",) if "val" in folders else ()
    return TrainAndTest(folders.get("pool") or folders["all"], folders.get("test"), notes)


def learn(texts: Mapping[str, ClassText], pictures: Sequence[LabelledPicture], setting: Setting) -> Fitted:
    """Choose, fit and assess a head."""
    norms = tuple(text.norm for text in texts.values())
    constants = {"logit_scale": setting.logit_scale, "anchor_scale": mean_norm(norms)}
    number = {name: row for row, name in enumerate(texts)}
    shots = Shots(
        stacked_rows(one.encoded for one in pictures),
        np.array([number[one.label] for one in pictures], np.int64),
        np.stack([text.unit for text in texts.values()]),
        EncoderConstants({name: value for name, value in constants.items() if value is not None}),
    )
    advice = advise(shots.counts, setting.wanted)
    # More threads than one make these small products slower, most of all on a loaded machine.
    with threadpool_limits(1, user_api="blas"):
        head = shots.fit(advice.make())
        assessment = assess(advice, shots)
    about = About(
        **vars(setting),
        classes=tuple(texts),
        text_norms=norms,
        shot_names=tuple(one.name for one in pictures),
        shot_sha256=tuple(one.encoded.sha256 for one in pictures),
        method=advice.method,
        reason=advice.reason,
        temperature=assessment.temperature,
        threshold=assessment.threshold,
        set_threshold=assessment.set_threshold,
        accuracy=assessment.accuracy and astuple(assessment.accuracy),
    )
    thumbnails = tuple(one.encoded.thumbnail for one in pictures)
    fitted = PictureHead(head, shots, thumbnails, about)
    return Fitted(fitted, assessment, _majority(shots, about, assessment), near_duplicates=near_duplicates(shots))


def learn_picture(head: PictureHead, picture: Encoded, label: str, encoder: Encoder) -> PictureHead:
    """The head with one more picture, or with another label for a picture it has; a new label is a new class."""
    if not label or len(label) > MOST_NAME or not label.isprintable():
        raise InputError(f"a class needs a name of 1 to {MOST_NAME} letters in one line.")
    about = head.about
    texts = dict(zip(about.classes, map(ClassText, head.shots.text, about.text_norms), strict=True))
    if label not in texts:
        texts |= encode_names(encoder, [label], about.prompt)
    rows = zip(about.shot_names, head.shots.y.tolist(), about.shot_sha256, head.shots.X, head.thumbnails, strict=True)
    pictures = [LabelledPicture(name, about.classes[y], Encoded(sha, x, small)) for name, y, sha, x, small in rows]
    if any((one.encoded.sha256, one.label) == (picture.sha256, label) for one in pictures):
        raise InputError(f"this picture is a shot of {label} already.")
    kept = [one for one in pictures if one.encoded.sha256 != picture.sha256]
    emptied = {one.label for one in pictures} - {one.label for one in kept} - {label}
    if emptied:
        raise InputError(f"{listed(sorted(emptied))} would be left without a picture. Add another one to it first.")
    added = LabelledPicture(f"added/{picture.sha256[:12]}", label, picture)
    try:
        return learn(texts, [*kept, added], about.setting()).head
    except UndefinedError as error:
        raise InputError(
            f"{label}: {head.head.info.title} needs {head.head.info.min_shots} pictures of each class, and a new class "
            "has one. Put the pictures into folders and type `kshot fit` again."
        ) from error


def _learnt_folder(folder: Folder, encoder: Encoder, setting: Setting) -> Fitted:
    """Learn from the pictures that can be read. A copy is no further shot: left out it would be scored by a head that
    has seen it."""
    read, unreadable = _read_photos(encoder, folder)
    fresh: dict[tuple[str, str], LabelledPicture] = {}
    copies = []
    for photo, encoded in read:
        if (encoded.sha256, photo.label) in fresh:
            copies.append(photo.name)
        else:
            fresh[encoded.sha256, photo.label] = LabelledPicture(photo.name, photo.label, encoded)
    labels = {one.label for one in fresh.values()}
    lost = [name for name in folder.classes if name not in labels]
    if lost:
        raise InputError(f"no readable picture is left for {listed(lost)}. {' '.join(unreadable[:5])}")
    texts = encode_names(encoder, folder.classes, setting.prompt)
    fitted = learn(texts, [*fresh.values()], setting)
    return replace(fitted, unreadable=unreadable, copies=tuple(copies))


def _read_photos(encoder: Encoder, folder: Folder) -> tuple[list[tuple[Photo, Encoded]], tuple[str, ...]]:
    """The pictures that can be read, and why other files are not used."""
    photos = {photo.path: photo for photo in folder.photos}
    read, unreadable = encode_readable(encoder, list(photos), "pictures")
    return [(photos[path], encoded) for path, encoded in read], (*folder.unused, *unreadable)


def _majority(shots: Shots, about: About, assessment: Assessment) -> tuple[str, ...]:
    """A note where answering with the largest class alone would be as right."""
    share = shots.counts.max() / shots.counts.sum()
    if assessment.accuracy is None or share < assessment.accuracy.low or share <= 1 / len(shots.counts):
        return ()
    return (
        f"always answering {about.classes[shots.counts.argmax()]} would be right for {100 * share:.0f} % of these "
        "pictures, so the accuracy alone shows little: look at the classes one by one.",
    )


def _tested(head: PictureHead, encoder: Encoder, folder: Folder | None) -> tuple[Interval | None, tuple[str, ...]]:
    """Accuracy on the test pictures that the head did not learn from, and why files are not used."""
    if folder is None:
        return None, ()
    strange = [name for name in folder.classes if name not in head.about.classes]
    if strange:
        raise InputError(
            f"the test pictures have classes without training pictures: {listed(strange)}. Known: "
            f"{listed(head.about.classes)}. Rename or remove them."
        )
    read, unused = _read_photos(encoder, folder)
    fresh = [(photo, encoded) for photo, encoded in read if encoded.sha256 not in head.about.shot_sha256]
    if len(fresh) < len(read):
        unused += (f"{len(read) - len(fresh)} test pictures are also training pictures; they are not counted.",)
    if not fresh:
        return None, unused
    best = head.probabilities(stacked_rows(encoded for _, encoded in fresh)).argmax(axis=1)
    right = sum(head.about.classes[c] == photo.label for c, (photo, _) in zip(best, fresh, strict=True))
    return wilson(right, len(fresh)), unused
