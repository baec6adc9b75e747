"""From a folder of pictures to a head and an honest report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kshot.apply.advice import AUTO, advise
from kshot.apply.assess import Assessment, assess
from kshot.apply.encoded import Encoded, encode_files, encode_names, stacked_rows
from kshot.apply.head import About, PictureHead
from kshot.apply.held_out import Shots
from kshot.apply.photos import list_photos, listed
from kshot.apply.suspects import Twins, repeated, twins
from kshot.datasets.encoders import load_encoder
from kshot.encode.protocol import Encoder
from kshot.errors import InputError

PROMPT = "a photo of a {}."


@dataclass(frozen=True)
class Fitted:
    """The head, what left-out pictures say of it, and what was noticed on the way."""

    head: PictureHead
    assessment: Assessment
    unreadable: tuple[str, ...]
    copies: tuple[str, ...]
    twins: tuple[Twins, ...]


def fit_folder(
    root: Path | str,
    *,
    backbone: str = "lite0",
    prompt: str = PROMPT,
    names: Path | None = None,
    method: str = AUTO,
    weights: Path | None = None,
    encoder: Encoder | None = None,
) -> Fitted:
    """Pictures that cannot be read and copies of a picture are left out and listed; a class that loses all its
    pictures is an error."""
    folder = list_photos(Path(root), names)
    encoder = encoder or load_encoder(backbone, weights)
    if not encoder.text:
        raise InputError(f"{backbone} has no text tower, so class names cannot help. Choose lite0 or a CLIP.")
    results = list(encode_files(encoder, [photo.path for photo in folder.photos]))
    unreadable = (*folder.unused, *(str(r) for r in results if isinstance(r, InputError)))
    read = [(p, r) for p, r in zip(folder.photos, results, strict=True) if isinstance(r, Encoded)]
    again = set(repeated([r.sha256 for _, r in read], [p.label for p, _ in read]))
    kept = [pair for row, pair in enumerate(read) if row not in again]
    labels = np.array([photo.label for photo, _ in kept], np.int64)
    lost = [name for label, name in enumerate(folder.classes) if label not in labels]
    if lost:
        raise InputError(f"no readable picture is left for {listed(lost)}. {' '.join(unreadable[:5])}")
    text = encode_names(encoder, folder.classes, prompt)
    shots = Shots(stacked_rows(r for _, r in kept), labels, text.unit)
    about = {
        "classes": folder.classes,
        "backbone": backbone,
        "encoder": encoder.facts(),
        "logit_scale": encoder.logit_scale,
        "text_norm": float(text.norms.mean()),
        "prompt": prompt,
        "wanted": method,
        "shot_names": tuple(photo.name for photo, _ in kept),
        "shot_sha256": tuple(r.sha256 for _, r in kept),
    }
    head, assessment = learn(shots, tuple(r.thumbnail for _, r in kept), about)
    copies = tuple(read[row][0].name for row in sorted(again))
    return Fitted(head, assessment, unreadable, copies, tuple(twins(shots)))


def learn(shots: Shots, thumbnails: Sequence[bytes], about: dict) -> tuple[PictureHead, Assessment]:
    """Choose, fit and assess; `about` lacks only what this decides."""
    advice = advise(shots.counts, about["logit_scale"], about["text_norm"], about["wanted"])
    head = advice.make().fit(shots.X, shots.y, text=shots.text)
    found = assess(advice, shots)
    accuracy = found.accuracy and (found.accuracy.value, found.accuracy.low, found.accuracy.high)
    decided = About(
        **about,
        method=advice.method,
        reason=advice.reason,
        temperature=found.temperature,
        threshold=found.threshold,
        accuracy=accuracy,
    )
    return PictureHead(head, shots, tuple(thumbnails), decided), found


def fit_pictures(root: Path | str, **options) -> PictureHead:
    """The head alone, for Python: `fit_pictures("PHOTOS").save("head.safetensors")`."""
    return fit_folder(root, **options).head
