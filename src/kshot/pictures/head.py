"""A head that knows its pictures: what was learnt, from which shots, with which encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.encode.protocol import Encoder
from kshot.errors import InputError
from kshot.methods.base import Classifier
from kshot.methods.headfile import read_head_file, save_head
from kshot.pictures.encoded import fingerprint
from kshot.pictures.held_out import LeftOut, Shots
from kshot.types import Array

KIND = "pictures"
# What fitting decides; all else of a head stays as it is when its shots change.
DECIDED = frozenset({"method", "reason", "temperature", "threshold", "set_threshold", "accuracy", "kshot"})


@dataclass(frozen=True, slots=True)
class About:
    """All that must be known besides numbers; it goes into the head file as JSON."""

    classes: tuple[str, ...]
    backbone: str
    encoder: dict[str, Any]
    logit_scale: float | None
    text_norms: tuple[float, ...]
    prompt: str
    method: str
    reason: str
    wanted: str
    temperature: float
    threshold: float
    accuracy: tuple[float, float, float] | None
    shot_names: tuple[str, ...]
    shot_sha256: tuple[str, ...]
    set_threshold: float | None = None
    kshot: str = version("kshot")

    @property
    def text_norm(self) -> float:
        return mean_norm(self.text_norms)

    def undecided(self) -> dict[str, Any]:
        """What `learn` is given to fit again."""
        return {f.name: getattr(self, f.name) for f in fields(About) if f.name not in DECIDED}


@dataclass(frozen=True)
class PictureHead:
    """A fitted head, the shots it was fitted on, their thumbnails, and what heads without them said of them."""

    head: Classifier
    shots: Shots
    thumbnails: tuple[bytes, ...]
    about: About
    left_out: LeftOut | None = None

    def probabilities(self, X: Float[Array, "n d"]) -> Float[Array, "n C"]:
        """Softmax of the scores at the temperature that left-out pictures chose."""
        from scipy.special import softmax

        return softmax(self.head.scores(X).astype(np.float64) / self.about.temperature, axis=1)

    def predict(self, pictures: Sequence[Path | str]) -> list[str]:
        """The class name of each picture file; one that cannot be read is an error."""
        from kshot.pictures.predict import predict_files

        answers = predict_files(self, [Path(picture) for picture in pictures], top=1)
        for one in answers:
            if one.error:
                raise InputError(one.error)
        return [one.top[0].name for one in answers]

    def check_encoder(self, encoder: Encoder) -> None:
        """Features of another encoder mean nothing to this head."""
        now, then = encoder.facts(), self.about.encoder
        if fingerprint(now) != fingerprint(then):
            differs = [key for key in sorted({*now, *then}) if now.get(key) != then.get(key)]
            raise InputError(
                f"this head was fitted on features of {self.about.backbone} ({then.get('name')}); the encoder "
                f"given differs in {', '.join(differs)}. Use that encoder, or fit again with `kshot fit`."
            )

    def save(self, path: Path | str) -> None:
        """Whole or not at all: the file is renamed into place."""
        ends = np.cumsum([len(own) for own in self.thumbnails])
        beside = {
            "X": self.shots.X,
            "y": self.shots.y,
            "text": self.shots.text,
            "thumbnails": np.frombuffer(b"".join(self.thumbnails), np.uint8),
            "thumbnail_ends": ends,
        }
        if self.left_out is not None:
            beside |= {"left_out_own": self.left_out.own, "left_out_says": self.left_out.says}
        save_head(self.head, path, method=self.about.method, beside=beside, kind=KIND, about=asdict(self.about))

    @staticmethod
    def load(path: Path | str) -> "PictureHead":
        """Read back what `kshot fit` wrote."""
        file = read_head_file(path)
        head, stored = file.head(), file.provenance
        if stored.get("kind") != KIND:
            raise InputError(f"{path} is a head without pictures. Make one with `kshot fit PHOTOS -o {path}`.")
        arrays = file.beside
        content, ends = arrays["thumbnails"].tobytes(), [0, *arrays["thumbnail_ends"].tolist()]
        thumbnails = tuple(content[a:b] for a, b in pairwise(ends))
        shots = Shots(arrays["X"], arrays["y"], arrays["text"])
        left_out = None
        if "left_out_own" in arrays:
            left_out = LeftOut(arrays["left_out_own"], arrays["left_out_says"])
        return PictureHead(head, shots, thumbnails, _about(stored["about"]), left_out)


def mean_norm(norms: Sequence[float]) -> float:
    """The mean norm of text prototypes, in the precision that they were encoded with."""
    return float(np.mean(np.asarray(norms, np.float32)))


def _about(stored: Mapping[str, Any]) -> About:
    if "text_norm" in stored:
        # Earlier files keep the mean alone.
        stored = {**stored, "text_norms": [stored["text_norm"]] * len(stored["classes"])}
    known = {field.name for field in fields(About)}
    values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in stored.items() if key in known}
    about = About(**values)
    for name in ("temperature", "threshold"):
        if not np.isfinite(value := getattr(about, name)) or (name == "temperature" and value <= 0):
            raise InputError(
                f"the head's {name} is {value}, so its answers mean nothing. Fit it again with `kshot fit`."
            )
    return about
