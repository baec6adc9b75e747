"""Fit a head on folders of pictures, or change one, and assess it."""

import logging
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kshot.encode.encoders import load_encoder
from kshot.encode.protocol import Encoder
from kshot.encode.sources.in_memory import dataset_in_memory
from kshot.errors import InputError
from kshot.pictures.advice import AUTO, advise, check_method
from kshot.pictures.album import Album, AlbumPicture
from kshot.pictures.assess import Assessment, assess, near_duplicates
from kshot.pictures.encoded import Encoded, encode_names, encode_readable, stacked_rows
from kshot.pictures.head import About, PictureHead, mean_norm
from kshot.pictures.held_out import Interval, wilson
from kshot.pictures.label_files import labelled_photos
from kshot.pictures.photos import Folder, Photo, existing_folder, folder_layout, list_photos, listed
from kshot.pictures.transform import PROMPT
from kshot.types import EncoderConstants

logger = logging.getLogger(__name__)


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
    notes: tuple[str, ...]
    tested: Interval | None
    unreadable: tuple[str, ...]
    copies: tuple[str, ...]
    near_duplicates: tuple[tuple[int, int], ...]


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
    """Fit a head on ROOT/CLASS/…, on ROOT/train with ROOT/test to test it, or on the pictures of a file of `labels`.

    ROOT may also be a dataset in memory (`kshot.encode_dataset` names them), and `encoder` one in memory. Pictures that
    cannot be read and copies of a picture are left out and listed; a class without readable pictures is an error.
    """
    check_method(method)
    given = _train_and_test(root, names, labels)
    encoder = encoder or load_encoder(backbone, weights, device)
    backbone = encoder.backbone or backbone
    if not encoder.text:
        raise InputError(f"{backbone} has no text tower, so class names cannot help. Choose lite0 or a CLIP.")
    album, unreadable, copies = _with_photos(Album({}, ()), given.train, encoder, prompt)
    lost = [name for name in given.train.classes if name not in album.texts]
    if lost:
        raise InputError(f"no readable picture is left for {listed(lost)}. {' '.join(unreadable[:5])}")
    about = {
        "backbone": backbone,
        "encoder": encoder.facts(),
        "logit_scale": encoder.logit_scale,
        "prompt": prompt,
        "wanted": method,
    }
    fitted = _fitted(album, about, given.notes, unreadable, copies)
    tested, untested = _tested(fitted.head, encoder, given.test)
    return replace(fitted, tested=tested, unreadable=(*unreadable, *untested))


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
    for part, own in by_part.items():
        present = {photo.label for photo in own}
        folders[part] = Folder(tuple(name for name in held.classes if name in present), tuple(own), ())
    notes = ("the validation split is not used.",) if "val" in folders else ()
    return TrainAndTest(folders.get("pool") or folders["all"], folders.get("test"), notes)


def change_head(
    head: PictureHead, encoder: Encoder | None = None, add: Path | None = None, drop: Sequence[str] = ()
) -> Fitted:
    """Drop classes, add the pictures of ADD/CLASS/… to new classes or known ones, then choose and fit again.

    The old pictures are not needed, because the head has their features; only adding needs the `encoder`.
    """
    album, unreadable, copies = Album.of(head), (), ()
    for name in dict.fromkeys(drop):
        album = album.drop_class(name)
    if add is not None:
        if encoder is None:
            raise InputError("pictures can only be added with the head's encoder.")
        head.check_encoder(encoder)
        folder = list_photos(add, least_classes=1)
        album, unreadable, copies = _with_photos(album, folder, encoder, head.about.prompt)
    return _fitted(album, head.about.setting(), (), unreadable, copies)


def learn(album: Album, about: dict[str, Any]) -> tuple[PictureHead, Assessment]:
    """Choose, fit and assess a head; `about` has the fields of About that do not depend on the pictures."""
    norms = tuple(text.norm for text in album.texts.values())
    constants = {"logit_scale": about["logit_scale"], "anchor_scale": mean_norm(norms)}
    known = EncoderConstants({name: value for name, value in constants.items() if value is not None})
    shots = replace(album.shots(), constants=known)
    advice = advise(shots.counts, about["wanted"])
    head = shots.fit(advice.make())
    assessment = assess(advice, shots)
    decided = About(
        **about,
        classes=album.classes,
        text_norms=norms,
        shot_names=tuple(one.name for one in album.pictures),
        shot_sha256=tuple(one.encoded.sha256 for one in album.pictures),
        method=advice.method,
        reason=advice.reason,
        temperature=assessment.temperature,
        threshold=assessment.threshold,
        set_threshold=assessment.set_threshold,
        accuracy=assessment.accuracy and astuple(assessment.accuracy),
    )
    thumbnails = tuple(one.encoded.thumbnail for one in album.pictures)
    return PictureHead(head, shots, thumbnails, decided, assessment.left_out), assessment


def _with_photos(
    album: Album, folder: Folder, encoder: Encoder, prompt: str
) -> tuple[Album, tuple[str, ...], tuple[str, ...]]:
    """Add a folder's pictures to an album; also returns why files are not used, and which are copies.

    A copy is no further shot, and left out it would be scored by a head that has seen it.
    """
    read, unreadable = _read_photos(encoder, folder)
    known = {(one.encoded.sha256, one.label) for one in album.pictures}
    fresh, copies = [], []
    for photo, encoded in read:
        if (encoded.sha256, photo.label) in known:
            copies.append(photo.name)
        else:
            known.add((encoded.sha256, photo.label))
            fresh.append(AlbumPicture(encoded.sha256, photo.name, photo.label, encoded))
    labels = {one.label for one in fresh}
    new = [name for name in folder.classes if name in labels and name not in album.texts]
    texts = encode_names(encoder, new, prompt) if new else {}
    return Album({**album.texts, **texts}, (*album.pictures, *fresh)), unreadable, tuple(copies)


def _read_photos(encoder: Encoder, folder: Folder) -> tuple[list[tuple[Photo, Encoded]], tuple[str, ...]]:
    """The pictures that can be read, and why other files are not used."""
    photos = {photo.path: photo for photo in folder.photos}
    read, unreadable = encode_readable(encoder, list(photos), "pictures")
    return [(photos[path], encoded) for path, encoded in read], (*folder.unused, *unreadable)


def _fitted(
    album: Album, about: dict[str, Any], notes: tuple[str, ...], unreadable: tuple[str, ...], copies: tuple[str, ...]
) -> Fitted:
    head, assessment = learn(album, about)
    counts = head.shots.counts
    share = counts.max() / counts.sum()
    if assessment.accuracy is not None and share >= assessment.accuracy.low and share > 1 / len(counts):
        notes += (
            f"always answering {album.classes[counts.argmax()]} would be right for {100 * share:.0f} % of these "
            "pictures, so the accuracy alone shows little: look at the classes one by one.",
        )
    return Fitted(head, assessment, notes, None, unreadable, copies, near_duplicates(head.shots))


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
    own = head.probabilities(stacked_rows(encoded for _, encoded in fresh)).argmax(axis=1)
    right = sum(head.about.classes[said] == photo.label for said, (photo, _) in zip(own, fresh, strict=True))
    return wilson(right, len(fresh)), unused
