"""The head that is being served: read by many, changed by one, and on disk always whole."""

import base64
import threading
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from kshot.apply.encoded import Encoded, encode_contents
from kshot.apply.fit import learn
from kshot.apply.head import About, PictureHead
from kshot.apply.held_out import Shots
from kshot.apply.predict import judge_picture, nearest_shots
from kshot.apply.serve.guards import Refused
from kshot.encode.protocol import Encoder
from kshot.errors import InputError, unknown
from kshot.files import locked, sha256, write_hashed

# Enough for any camera's picture after it was shrunk once; a 50-megapixel picture is refused by its header.
MOST_PIXELS = 40_000_000
DECIDED = {"method", "reason", "temperature", "threshold", "accuracy", "kshot"}


class LiveHead:
    """`head` is replaced as a whole, so a prediction never sees a half-changed one."""

    def __init__(self, path: Path, encoder: Encoder):
        self.path = path
        self.encoder = encoder
        # Hashed before it is read: a file that changes in between is noticed at the next change.
        self._on_disk = _hash(path)
        self.head = PictureHead.load(path)
        self.head.check_encoder(encoder)
        self._changing = threading.Lock()

    def about(self) -> dict[str, Any]:
        """What the page shows of the head."""
        about = self.head.about
        return {
            "classes": about.classes,
            "shots": self.head.shots.counts.tolist(),
            "method": self.head.head.info.title,
            "reason": about.reason,
            "accuracy": about.accuracy,
            "backbone": about.backbone,
        }

    def encode(self, content: bytes) -> Encoded:
        (encoded,) = encode_contents(self.encoder, [("the picture", content)], None, most_pixels=MOST_PIXELS)
        if isinstance(encoded, InputError):
            raise encoded
        return encoded

    def predict(self, content: bytes) -> dict[str, Any]:
        head = self.head
        feature = self.encode(content).feature
        said = judge_picture(head, "", feature)
        return {
            "answer": said.answer,
            "known": said.known,
            "top": [asdict(guess) for guess in said.top],
            "nearest": [
                asdict(one) | {"thumbnail": base64.b64encode(head.thumbnails[one.row]).decode()}
                for one in nearest_shots(head, feature, 3)
            ],
        }

    def add(self, content: bytes, label: str) -> dict[str, Any]:
        """One more shot: refit, write, and only then serve the new head."""
        classes = self.head.about.classes
        if label not in classes:
            raise InputError(unknown("class", label, classes, "Choose one of them."))
        new = self.encode(content)
        with self._changing:
            before = self.head
            if new.sha256 in before.about.shot_sha256:
                raise InputError("this picture is a shot already.")
            shots = Shots(
                np.vstack([before.shots.X, new.feature[None]]),
                np.append(before.shots.y, classes.index(label)),
                before.shots.text,
            )
            known = {f.name: getattr(before.about, f.name) for f in fields(About) if f.name not in DECIDED}
            known["shot_names"] = (*before.about.shot_names, f"added/{new.sha256[:12]}")
            known["shot_sha256"] = (*before.about.shot_sha256, new.sha256)
            head, _ = learn(shots, (*before.thumbnails, new.thumbnail), known)
            # Another server of the same file looks and writes before us or after us, never in between.
            with locked(self.path):
                self._on_disk = write_hashed(self.path, head.save, lambda _: self._check_unchanged())
            self.head = head
        return self.about()

    def file(self) -> bytes:
        """The head file as it is on disk."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise Refused(
                404,
                f"the head file {self.path.name} cannot be read ({error.strerror}). Put it back where "
                "`kshot serve` found it.",
            ) from None

    def _check_unchanged(self) -> None:
        """Another file than the one that this server read or wrote holds others' shots."""
        if _hash(self.path) != self._on_disk:
            raise Refused(
                409,
                f"the head file {self.path.name} was changed, moved or removed by another program, so the "
                "picture was not added. Restart `kshot serve` to load it, then add the picture again.",
            )


def _hash(path: Path) -> str | None:
    return sha256(path) if path.is_file() else None
