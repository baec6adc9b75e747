"""The pictures of a served head as the page lists them: what the head is least sure about comes first."""

import base64
from typing import Any

import numpy as np

from kshot.errors import InputError, unknown
from kshot.pictures.serve.album import AlbumPicture
from kshot.pictures.serve.live import LiveHead

PER_LIST = 60


def list_shown(live: LiveHead, label: str | None, start: int) -> dict[str, Any]:
    """The pictures of a class, or without a `label` those that left-out heads take for another class; at most
    `PER_LIST` from `start` on. What has changed since the head was fitted comes before all that is measured."""
    album, (head, fitted) = live.album, live.served
    if label is not None and label not in album.classes:
        raise InputError(unknown("class", label, album.classes, "Choose one of them."))
    measured: dict[tuple[str, str], tuple[float, str]] = {}
    if head.left_out is not None:
        rows = zip(fitted.pictures, head.left_out.own.tolist(), head.left_out.says.tolist(), strict=True)
        told = [(one, own, fitted.classes[says]) for one, own, says in rows if not np.isnan(own)]
        # A class that was removed since is nothing to move a picture to.
        measured = {(one.key, one.label): (own, says) for one, own, says in told if says in album.classes}

    def judged(one: AlbumPicture) -> tuple[float, str]:
        return measured.get((one.key, one.label), (-1.0, one.label))

    if label is None:
        chosen = [one for one in album.pictures if judged(one)[1] != one.label]
    else:
        chosen = [one for one in album.pictures if one.label == label]
    chosen.sort(key=judged)
    learnt = {(one.key, one.label) for one in fitted.pictures}
    return {
        "total": len(chosen),
        "pictures": [
            {
                "key": one.key,
                "name": one.name,
                "label": one.label,
                "learnt": (one.key, one.label) in learnt,
                "own": own if own >= 0 else None,
                "says": says,
                "thumbnail": base64.b64encode(one.encoded.thumbnail).decode(),
            }
            for one in chosen[start : start + PER_LIST]
            for own, says in [judged(one)]
        ],
    }
