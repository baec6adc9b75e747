"""A fitted head with its shots, their thumbnails and the facts of its encoder, in one file."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.encode.protocol import Encoder, known_norms
from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.headfile import PICTURES, read_head_file, save_head
from kshot.pictures.encoded import fingerprint
from kshot.pictures.held_out import Shots
from kshot.types import Array


@dataclass(frozen=True)
class Setting:
    """What stays the same when a head learns from other pictures: encoder, prompt, and the method asked for."""

    backbone: str
    encoder: dict[str, Any]
    logit_scale: float | None
    prompt: str
    wanted: str


@dataclass(frozen=True)
class About(Setting):
    """Everything about a head except its arrays; kept in the head file as JSON."""

    classes: tuple[str, ...]
    text_norms: tuple[float, ...]
    method: str
    reason: str
    temperature: float
    threshold: float | None
    accuracy: tuple[float, float, float] | None
    shot_names: tuple[str, ...]
    shot_sha256: tuple[str, ...]
    set_threshold: float | None = None
    kshot: str = version("kshot")

    @property
    def caveat(self) -> str:
        """What does not hold of the answers because too few pictures were left out; empty where nothing."""
        if self.accuracy is None:
            return "learnt from one picture per class: probabilities are not calibrated, and no answer is called unsure"
        if self.threshold is None:
            return "fewer than 19 left-out pictures were recognised, so no answer is called unsure"
        return ""

    def setting(self) -> Setting:
        """What fitting again needs beside the pictures."""
        return Setting(**{field.name: getattr(self, field.name) for field in fields(Setting)})


@dataclass(frozen=True)
class PictureHead:
    """A fitted head and its shots with thumbnails."""

    head: Classifier
    shots: Shots
    thumbnails: tuple[bytes, ...]
    about: About

    def logits(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        """Scores over the temperature that was fitted on left-out pictures; their softmax is the probabilities."""
        return self.head.scores(X).astype(np.float64) / self.about.temperature

    def probabilities(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        """Probabilities of the classes."""
        from scipy.special import softmax

        return softmax(self.logits(X), axis=1)

    def predict(self, pictures: Sequence[Any], encoder: Encoder | None = None, device: str = "auto") -> list[str]:
        """The class name of each picture file, or picture of Pillow; an unreadable file is an error.

        `encoder` is the one that the head was fitted with, where it is in memory.
        """
        from kshot.pictures.predict import head_encoder
        from kshot.pictures.transform import EncodePictures

        if encoder is not None:
            self.check_encoder(encoder)
        found = EncodePictures(encoder or head_encoder(self, device=device)).transform(pictures)
        return [self.about.classes[c] for c in self.probabilities(found).argmax(axis=1)]

    def to_torch(self) -> Any:
        """An `nn.Module` from features of the encoder (n, d) to logits (n, C), whose softmax is the probabilities."""
        head = copy(self.head)
        head.scale_ = self.head.scale_ / self.about.temperature
        module = head.to_torch()
        module.classes = list(self.about.classes)
        return module

    def check_encoder(self, encoder: Encoder) -> None:
        """Refuse an encoder whose features this head was not fitted on."""
        now, then = encoder.facts(), self.about.encoder
        if fingerprint(now) != fingerprint(then):
            differs = [key for key in sorted({*now, *then}) if now.get(key) != then.get(key)]
            raise InputError(
                f"this head was fitted on features of {self.about.backbone} ({then.get('name')}); the encoder "
                f"given differs in {', '.join(differs)}. Use that encoder, or fit again with `kshot fit`."
            )

    def save(self, path: Path | str) -> None:
        """Write the head file; an interrupted write leaves the old file."""
        beside = {
            "X": self.shots.X,
            "y": self.shots.y,
            "text": self.shots.text,
            "thumbnails": np.frombuffer(b"".join(self.thumbnails), np.uint8),
            "thumbnail_ends": np.cumsum([len(small) for small in self.thumbnails]),
        }
        save_head(self.head, path, method=self.about.method, beside=beside, kind=PICTURES, about=asdict(self.about))

    @staticmethod
    def load(path: Path | str) -> "PictureHead":
        """Read back what `kshot fit` wrote."""
        file = read_head_file(path)
        head, stored = file.head(), file.provenance
        if stored.get("kind") != PICTURES:
            raise InputError(f"{path} is a head without pictures. Make one with `kshot fit PHOTOS -o {path}`.")
        arrays = file.beside
        content, ends = arrays["thumbnails"].tobytes(), [0, *arrays["thumbnail_ends"].tolist()]
        thumbnails = tuple(content[a:b] for a, b in pairwise(ends))
        shots = Shots(arrays["X"], arrays["y"], arrays["text"])
        return PictureHead(head, shots, thumbnails, _about(stored["about"]))


def mean_norm(norms: Sequence[float]) -> float | None:
    """The mean norm of text prototypes, in the precision that they were encoded with; None where it is not known."""
    known = known_norms(np.asarray(norms, np.float32))
    return None if known is None else float(known.mean())


def _about(stored: Mapping[str, Any]) -> About:
    known = {field.name for field in fields(About)}
    values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in stored.items() if key in known}
    about = About(**values)
    sound = {
        "temperature": 0 < about.temperature < np.inf,
        "threshold": about.threshold is None or np.isfinite(about.threshold),
    }
    for name in (name for name, is_sound in sound.items() if not is_sound):
        raise InputError(
            f"the head's {name} is {getattr(about, name)}, so its probabilities are wrong. Fit it again: `kshot fit`."
        )
    return about
