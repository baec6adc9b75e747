"""Pictures and classes added to a head, or classes dropped, without the old pictures: the file has their features."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kshot.encode.protocol import Encoder
from kshot.errors import InputError, unknown
from kshot.pictures.encoded import Encoded, encode_names, stacked_rows
from kshot.pictures.fit import Fitted, learn, majority_notes, read_photos
from kshot.pictures.head import PictureHead
from kshot.pictures.held_out import Shots
from kshot.pictures.photos import list_photos
from kshot.pictures.suspects import twins


def change_head(
    head: PictureHead, encoder: Encoder | None = None, add: Path | None = None, drop: Sequence[str] = ()
) -> Fitted:
    """Drop classes, add the pictures of ADD/CLASS/…, of new classes or of known ones, then choose and fit again.

    Only what is added needs the `encoder`. Copies of pictures that the class has already are left out and listed.
    """
    left = _without(head, drop) if drop else head
    if add is None:
        return _fitted(left, (), ())
    if encoder is None:
        raise InputError("pictures can only be added with the head's encoder.")
    head.check_encoder(encoder)
    folder = list_photos(add, least_classes=1)
    read, unreadable = read_photos(encoder, folder)
    taught = {
        (sha256, left.about.classes[label]) for sha256, label in zip(left.about.shot_sha256, left.shots.y, strict=True)
    }
    fresh, copies = [], []
    for photo, encoded in read:
        key = encoded.sha256, folder.classes[photo.label]
        if key in taught:
            copies.append(photo.name)
        else:
            taught.add(key)
            fresh.append((photo.name, key[1], encoded))
    return _fitted(_with(left, fresh, encoder), unreadable, tuple(copies))


def _without(head: PictureHead, drop: Sequence[str]) -> PictureHead:
    classes = head.about.classes
    for name in drop:
        if name not in classes:
            raise InputError(unknown("class", name, classes, "Drop one of them."))
    kept = [label for label, name in enumerate(classes) if name not in drop]
    if len(kept) < 2:
        raise InputError(f"{len(kept)} of {len(classes)} classes would be left; a classifier needs at least two.")
    rows = np.flatnonzero(np.isin(head.shots.y, kept))
    about = replace(
        head.about,
        classes=tuple(classes[label] for label in kept),
        text_norms=tuple(head.about.text_norms[label] for label in kept),
        shot_names=tuple(head.about.shot_names[row] for row in rows),
        shot_sha256=tuple(head.about.shot_sha256[row] for row in rows),
    )
    shots = Shots(head.shots.X[rows], np.searchsorted(kept, head.shots.y[rows]), head.shots.text[kept])
    return replace(head, shots=shots, thumbnails=tuple(head.thumbnails[row] for row in rows), about=about)


def _with(head: PictureHead, fresh: Sequence[tuple[str, str, Encoded]], encoder: Encoder) -> PictureHead:
    if not fresh:
        return head
    about, shots = head.about, head.shots
    new = sorted({label for _, label, _ in fresh} - set(about.classes))
    classes = (*about.classes, *new)
    text, norms = shots.text, about.text_norms
    if new:
        encoded = encode_names(encoder, new, about.prompt)
        text = np.vstack([text, encoded.unit])
        norms = (*norms, *encoded.norms.tolist())
    grown = Shots(
        np.vstack([shots.X, stacked_rows(one for *_, one in fresh)]),
        np.append(shots.y, [classes.index(label) for _, label, _ in fresh]),
        text,
    )
    about = replace(
        about,
        classes=classes,
        text_norms=norms,
        shot_names=(*about.shot_names, *(name for name, *_ in fresh)),
        shot_sha256=(*about.shot_sha256, *(one.sha256 for *_, one in fresh)),
    )
    thumbnails = (*head.thumbnails, *(one.thumbnail for *_, one in fresh))
    return replace(head, shots=grown, thumbnails=thumbnails, about=about)


def _fitted(head: PictureHead, unreadable: tuple[str, ...], copies: tuple[str, ...]) -> Fitted:
    learnt, assessment = learn(head.shots, head.thumbnails, head.about.undecided())
    notes = majority_notes(head.shots, assessment, head.about.classes)
    return Fitted(learnt, assessment, notes, None, unreadable, copies, tuple(twins(head.shots)))
