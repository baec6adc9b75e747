"""The head that is being served: predictions read it, one picture at a time is learnt, and its file is always whole."""

import base64
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kshot.encode.protocol import Encoder
from kshot.errors import KshotError
from kshot.files import sha256, write_hashed
from kshot.pictures.encoded import Encoded, all_encoded, encode_contents
from kshot.pictures.fit import learn_picture
from kshot.pictures.head import PictureHead
from kshot.pictures.predict import nearest_shots, predict_feature

# Phones take pictures of 108 megapixels; one at a time is decoded.
MOST_PIXELS = 120_000_000


class Refused(KshotError):
    """A request that is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class LiveHead:
    """A head, its file and its encoder. Encoding and learning happen one at a time; predictions wait for no fit."""

    def __init__(self, path: Path, encoder: Encoder):
        self.path, self.encoder = path, encoder
        # Hashed before it is read, so that a change in between is noticed later.
        self._on_disk = _hash(path)
        self.head = PictureHead.load(path)
        self.head.check_encoder(encoder)
        self._encoding, self._learning = threading.Lock(), threading.Lock()

    def about(self) -> dict[str, Any]:
        """What the page shows of the head."""
        about, shots = self.head.about, self.head.shots
        return {
            "classes": about.classes,
            "shots": shots.counts.tolist(),
            "method": self.head.head.info.title,
            "accuracy": about.accuracy,
            "backbone": about.backbone,
        }

    def predict(self, content: bytes) -> dict[str, Any]:
        """Answer, set and nearest shots of one picture."""
        head, feature = self.head, self._encoded(content).feature
        prediction = predict_feature(head, "", feature)
        return asdict(prediction) | {
            "answer": prediction.answer,
            "nearest": [
                asdict(one) | {"thumbnail": base64.b64encode(head.thumbnails[one.row]).decode()}
                for one in nearest_shots(head, feature, 3)
            ],
        }

    def learn(self, content: bytes, label: str) -> dict[str, Any]:
        """Learn that the picture shows `label`; return `about` once that is in the head file."""
        picture = self._encoded(content)
        with self._learning:
            self._check_unchanged()
            head = learn_picture(self.head, picture, label, self.encoder)
            self._on_disk = write_hashed(self.path, head.save, lambda _: self._check_unchanged())
            self.head = head
        return self.about()

    def _encoded(self, content: bytes) -> Encoded:
        with self._encoding:
            return all_encoded(
                encode_contents(self.encoder, [("the picture", content)], None, most_pixels=MOST_PIXELS)
            )[0]

    def _check_unchanged(self) -> None:
        """Refuse to replace a head file that another program wrote, because it holds other shots."""
        if _hash(self.path) != self._on_disk:
            raise Refused(
                409,
                f"the head file {self.path.name} was changed, moved or removed by another program, so nothing was "
                "changed here. Restart `kshot serve` to load it, then add the picture again.",
            )


def _hash(path: Path) -> str | None:
    return sha256(path) if path.is_file() else None
