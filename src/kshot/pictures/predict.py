"""Predictions of a picture head, and their explanations."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kshot.encode.encoders import load_encoder
from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.pictures.assess import margins
from kshot.pictures.encoded import encode_files
from kshot.pictures.head import PictureHead
from kshot.types import Array

UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Guess:
    """A class and its probability."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The likeliest classes of a picture, or the `error` that prevented it.

    `one_of` are classes that include the right one for 95 of 100 pictures of the head's classes; empty if fewer than 19
    pictures were left out. A picture that is not `sure` may show none of them.
    """

    picture: str
    top: tuple[Guess, ...]
    sure: bool
    one_of: tuple[str, ...] = ()
    error: str = ""

    @property
    def answer(self) -> str:
        return self.error or (self.top[0].name if self.sure else UNSURE)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A shot and its cosine to a picture."""

    row: int
    name: str
    label: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """A class's score as a sum of two parts: the part along its text prototype, and the rest."""

    name: str
    probability: float
    text: float
    pictures: float


def head_encoder(
    head: PictureHead, backbone: str | None = None, weights: Path | None = None, device: str = "auto"
) -> Encoder:
    """Load the head's encoder; another `backbone` or other `weights` are an error."""
    if backbone is None and head.about.encoder.get("library") == Encoder.library:
        raise InputError(
            f"this head was fitted with Python functions ({head.about.backbone}), which cannot be loaded. In Python: "
            "head.predict(pictures, encoder=…)."
        )
    encoder = load_encoder(backbone or head.about.backbone, weights, device)
    head.check_encoder(encoder)
    return encoder


def predict_files(
    head: PictureHead,
    files: Sequence[Path],
    top: int = 3,
    threshold: float | None = None,
    encoder: Encoder | None = None,
) -> list[Prediction]:
    """One prediction per file, in order; that of an unreadable file has an error."""
    encoded = encode_files(encoder or head_encoder(head), files)
    return [
        Prediction(str(file), (), False, error=str(result))
        if isinstance(result, InputError)
        else predict_feature(head, str(file), result.feature, top, threshold)
        for file, result in zip(files, encoded, strict=True)
    ]


def predict_feature(
    head: PictureHead, picture: str, feature: Array, top: int = 3, threshold: float | None = None
) -> Prediction:
    """Predict a picture. The answer is "unsure" where its margin is below the head's, or its probability below the
    `threshold` if one is given."""
    from scipy.special import softmax

    logits = head.logits(feature[None])
    own = softmax(logits, axis=1)[0]
    order, classes, about = np.argsort(-own, kind="stable"), head.about.classes, head.about
    if threshold is not None:
        sure = bool(own[order[0]] >= threshold)
    else:
        sure = about.threshold is None or bool(margins(logits)[0] >= about.threshold)
    guesses = tuple(Guess(classes[c], float(own[c])) for c in order[:top])
    reach = 0
    if about.set_threshold is not None:
        # The likeliest class is named even if it is below the threshold.
        reach = max(1, int((own >= about.set_threshold).sum()))
    return Prediction(picture, guesses, sure, tuple(classes[c] for c in order[:reach]))


def nearest_shots(head: PictureHead, feature: Array, count: int = 5) -> list[Neighbour]:
    cosine = head.shots.X @ feature
    return [
        Neighbour(int(row), head.about.shot_names[row], head.about.classes[head.shots.y[row]], float(cosine[row]))
        for row in np.argsort(-cosine, kind="stable")[:count]
    ]


def evidence(head: PictureHead, feature: Array) -> list[Evidence]:
    """Split the logits of the three likeliest classes in two parts, each minus its mean over all classes."""
    coef, bias = linear_parts(head)
    text = head.shots.text
    along_text = (coef * text).sum(axis=1) * (text @ feature)
    rest = coef @ feature + bias - along_text
    own = head.probabilities(feature[None])[0]
    along_text, rest = ((part - part.mean()) / head.about.temperature for part in (along_text, rest))
    return [
        Evidence(head.about.classes[c], float(own[c]), float(along_text[c]), float(rest[c]))
        for c in np.argsort(-own, kind="stable")[:3]
    ]


def linear_parts(head: PictureHead) -> tuple[Array, Array]:
    """Weights and biases of a linear head; another head is an error."""
    if not head.head.info.linear:
        raise InputError(f"{head.head.info.title} is not one linear map. Fit again with --method clap or lpp.")
    return head.head.coef_, head.head.intercept_
