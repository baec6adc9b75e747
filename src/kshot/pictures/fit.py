"""From a folder of pictures to a head and an honest report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kshot.encode.encoders import load_encoder
from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.pictures.advice import AUTO, advise, known_method
from kshot.pictures.assess import Assessment, assess
from kshot.pictures.encoded import Encoded, encode_files, encode_names, stacked_rows
from kshot.pictures.head import About, PictureHead, mean_norm
from kshot.pictures.held_out import Interval, Shots, wilson
from kshot.pictures.label_files import labelled_photos
from kshot.pictures.layout import Layout, folder_layout, majority_note
from kshot.pictures.photos import Folder, Photo, existing_folder, list_photos, listed
from kshot.pictures.suspects import Twins, repeated, twins
from kshot.progress import Progress

PROMPT = "a photo of a {}."


@dataclass(frozen=True)
class Fitted:
    """The head, what left-out pictures say of it, and what was noticed on the way.

    `tested` is the accuracy on the pictures of a test folder, where there is one.
    """

    head: PictureHead
    assessment: Assessment
    notes: tuple[str, ...]
    tested: Interval | None
    unreadable: tuple[str, ...]
    copies: tuple[str, ...]
    twins: tuple[Twins, ...]


def fit_folder(
    root: Path | str,
    *,
    backbone: str = "lite0",
    prompt: str = PROMPT,
    names: Path | None = None,
    labels: Path | None = None,
    method: str = AUTO,
    weights: Path | None = None,
    encoder: Encoder | None = None,
) -> Fitted:
    """Pictures that cannot be read and copies of a picture are left out and listed; a class that loses all its
    pictures is an error. Of ROOT/train and ROOT/test the first teaches and the second tests; where a file of `labels`
    says what the pictures show, folders mean nothing."""
    known_method(method)
    layout = folder_layout(existing_folder(Path(root))) if labels is None else Layout(Path(root), None, ())
    folder = list_photos(layout.teaches, names) if labels is None else labelled_photos(Path(root), labels)
    encoder = encoder or load_encoder(backbone, weights)
    if not encoder.text:
        raise InputError(f"{backbone} has no text tower, so class names cannot help. Choose lite0 or a CLIP.")
    read, unreadable = read_photos(encoder, folder)
    again = set(repeated([r.sha256 for _, r in read], [p.label for p, _ in read]))
    kept = [pair for row, pair in enumerate(read) if row not in again]
    y = np.array([photo.label for photo, _ in kept], np.int64)
    lost = [name for label, name in enumerate(folder.classes) if label not in y]
    if lost:
        raise InputError(f"no readable picture is left for {listed(lost)}. {' '.join(unreadable[:5])}")
    text = encode_names(encoder, folder.classes, prompt)
    shots = Shots(stacked_rows(r for _, r in kept), y, text.unit)
    about = {
        "classes": folder.classes,
        "backbone": backbone,
        "encoder": encoder.facts(),
        "logit_scale": encoder.logit_scale,
        "text_norms": tuple(text.norms.tolist()),
        "prompt": prompt,
        "wanted": method,
        "shot_names": tuple(photo.name for photo, _ in kept),
        "shot_sha256": tuple(r.sha256 for _, r in kept),
    }
    head, assessment = learn(shots, tuple(r.thumbnail for _, r in kept), about)
    copies = tuple(read[row][0].name for row in sorted(again))
    tested, untested = _tested(head, encoder, layout.tests, names)
    notes = (*layout.notes, *majority_notes(shots, assessment, folder.classes))
    return Fitted(head, assessment, notes, tested, (*unreadable, *untested), copies, tuple(twins(shots)))


def read_photos(encoder: Encoder, folder: Folder) -> tuple[list[tuple[Photo, Encoded]], tuple[str, ...]]:
    """The pictures that can be read, and why others cannot."""
    results = []
    with Progress("pictures", len(folder.photos), ends=False) as progress:
        for result in encode_files(encoder, [photo.path for photo in folder.photos]):
            results.append(result)
            progress.advance()
    read = [(p, r) for p, r in zip(folder.photos, results, strict=True) if isinstance(r, Encoded)]
    return read, (*folder.unused, *(str(r) for r in results if isinstance(r, InputError)))


def _tested(
    head: PictureHead, encoder: Encoder, tests: Path | None, names: Path | None
) -> tuple[Interval | None, tuple[str, ...]]:
    """Accuracy on the test folder's pictures that the head did not learn from."""
    if tests is None:
        return None, ()
    folder = list_photos(tests, names)
    strange = [name for name in folder.classes if name not in head.about.classes]
    if strange:
        raise InputError(
            f"{tests} has classes that are not taught: {listed(strange)}. Known: {listed(head.about.classes)}. "
            "Rename or remove their folders."
        )
    read, unreadable = read_photos(encoder, folder)
    taught = set(head.about.shot_sha256)
    fresh = [(photo, encoded) for photo, encoded in read if encoded.sha256 not in taught]
    seen = len(read) - len(fresh)
    told = (f"{seen} pictures of {tests} are also taught; they test nothing.",) if seen else ()
    if not fresh:
        return None, (*unreadable, *told)
    own = head.probabilities(stacked_rows(encoded for _, encoded in fresh)).argmax(axis=1)
    truth = [head.about.classes.index(folder.classes[photo.label]) for photo, _ in fresh]
    return wilson(int(np.count_nonzero(own == truth)), len(truth)), (*unreadable, *told)


def majority_notes(shots: Shots, assessment: Assessment, classes: tuple[str, ...]) -> tuple[str, ...]:
    if assessment.accuracy is None:
        return ()
    note = majority_note(shots.counts.tolist(), classes, assessment.accuracy.low)
    return (note,) if note else ()


def learn(shots: Shots, thumbnails: Sequence[bytes], about: dict) -> tuple[PictureHead, Assessment]:
    """Choose, fit and assess; `about` lacks only what this decides."""
    constants = {"logit_scale": about["logit_scale"], "anchor_scale": mean_norm(about["text_norms"])}
    known = {name: value for name, value in constants.items() if value is not None}
    shots = replace(shots, constants=known)
    advice = advise(shots.counts, about["wanted"])
    head = shots.fit(advice.make())
    assessment = assess(advice, shots)
    accuracy = assessment.accuracy and (assessment.accuracy.value, assessment.accuracy.low, assessment.accuracy.high)
    decided = About(
        **about,
        method=advice.method,
        reason=advice.reason,
        temperature=assessment.temperature,
        threshold=assessment.threshold,
        set_threshold=assessment.set_threshold,
        accuracy=accuracy,
    )
    return PictureHead(head, shots, tuple(thumbnails), decided, assessment.left_out), assessment


def fit_pictures(root: Path | str, **options) -> PictureHead:
    """The head alone, for Python: `fit_pictures("PHOTOS").save("head.safetensors")`."""
    return fit_folder(root, **options).head
