"""Predict a folder's pictures together: the others of a batch help to tell a class, where they are of all classes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.methods.gauss_together import GaussTogether
from kshot.pictures.encoded import encode_files
from kshot.pictures.head import PictureHead
from kshot.pictures.predict import Prediction, head_encoder, predict_feature
from kshot.solvers.transduction import NEIGHBOURS
from kshot.types import Array


def predict_together(
    head: PictureHead,
    files: Sequence[Path],
    top: int = 3,
    threshold: float | None = None,
    encoder: Encoder | None = None,
) -> tuple[list[Prediction], str]:
    """One prediction per file, and what was done: the batch is used only if the head's own pictures gain by it."""
    results = encode_files(encoder or head_encoder(head), files)
    features = [result.feature for result in results if not isinstance(result, InputError)]
    words = f"one by one: fewer than {NEIGHBOURS + 1} pictures can be read"
    if len(features) > NEIGHBOURS:
        head, words = with_batch(head, np.stack(features))
    predictions = [
        Prediction(str(file), (), False, error=str(result))
        if isinstance(result, InputError)
        else predict_feature(head, str(file), result.feature, top, threshold)
        for file, result in zip(files, results, strict=True)
    ]
    return predictions, words


def with_batch(head: PictureHead, X: Float[Array, "n d"]) -> tuple[PictureHead, str]:
    """The head for these pictures alone, or the head itself where the batch does not help, and that in words."""
    shots = head.shots
    classes = range(len(shots.text))
    fitted = GaussTogether().fit(
        shots.X, shots.y, text=shots.text, classes=classes, constants=shots.constants, queries=X
    )
    chosen = {name: choice.value for name, choice in fitted.selected_.items()}
    if not chosen["weight"]:
        reason = "no class has a second picture to try it on" if shots.counts.max() < 2 else "hidden shots gain nothing"
        return head, f"one by one: {reason}"
    words = (
        f"together: hidden shots became e^{chosen['gain']:.1f} times as likely; {chosen['moved']:.0%} of the answers "
        "changed. Answers depend on the other pictures: right where these are of all classes."
    )
    return replace(head, head=fitted, about=replace(head.about, temperature=1.0)), words
