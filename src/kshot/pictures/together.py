"""A head for the pictures of one folder: the others help to tell a class, where they are of all classes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.methods.gauss_together import GaussTogether
from kshot.pictures.encoded import encode_files
from kshot.pictures.head import PictureHead
from kshot.solvers.transduction import NEIGHBOURS


def together(head: PictureHead, files: Sequence[Path], encoder: Encoder) -> tuple[PictureHead, str]:
    """The head for these files alone, or the head itself where it does not gain by them; and what was done in words.

    Its own pictures decide: half of them are hidden among the files.
    """
    results = encode_files(encoder, files)
    features = [result.feature for result in results if not isinstance(result, InputError)]
    if len(features) <= NEIGHBOURS:
        return head, f"one by one: together needs {NEIGHBOURS + 1} pictures, {len(features)} can be read"
    shots, method = head.shots, GaussTogether()
    classes = range(len(shots.text))
    method.fit(
        shots.X, shots.y, text=shots.text, classes=classes, constants=shots.constants, queries=np.stack(features)
    )
    chosen = {name: choice.value for name, choice in method.selected_.items()}
    if not chosen["weight"]:
        alone = shots.counts.max() < 2
        reason = "no class has a second picture to try it on" if alone else "hidden training pictures do not gain"
        return head, f"one by one: {reason}"
    words = (
        f"together: hidden training pictures became e^{chosen['gain']:.1f} times as likely, {chosen['moved']:.0%} of "
        "the answers changed; right where the pictures are of all classes"
    )
    return replace(head, head=method, about=replace(head.about, temperature=1.0)), words
