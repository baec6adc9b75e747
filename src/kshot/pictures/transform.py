"""An encoder as the first step of a scikit-learn pipeline."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.encode.encoders import load_encoder
from kshot.encode.protocol import Encoder
from kshot.encode.sources.in_memory import MemoryPicture
from kshot.methods.parameters import Estimator
from kshot.pictures.encoded import ClassText, PictureFile, all_encoded, encode_files, encode_names, stacked_rows
from kshot.pictures.head import mean_norm
from kshot.types import Array, EncoderConstants

PROMPT = "a photo of a {}."


class EncodePictures(Estimator):
    """Picture files, or pictures of Pillow, to unit features: `make_pipeline(EncodePictures(), CLAP())`.

    It learns nothing. Give the head behind it the class names as `text` and `classes`, and what is known of the encoder
    as `constants`: `about = {"clap__text": step.text_of(names), "clap__classes": names, "clap__constants":
    step.constants_of(names)}` and `pipeline.fit(pictures, y, **about)`.
    Without constants a head assumes CLIP's. To keep a pipeline, keep its head with `save_head`.

    Parameters
    ----------
    encoder : Encoder or text, default 'lite0'
        An `Encoder`, or what `--backbone` takes.
    device : text, default 'auto'
        auto, cpu, cuda or mps, for an encoder that is given by its name.
    """

    def __init__(self, encoder: Any = "lite0", device: str = "auto"):
        self.encoder, self.device = encoder, device

    def fit(self, X: Any, y: Any = None) -> "EncodePictures":
        """Return itself."""
        return self

    def transform(self, X: Sequence[Any]) -> Float[Array, "n d"]:
        """Unit features of the pictures; one that cannot be read is an error."""
        return stacked_rows(all_encoded(encode_files(self._loaded(), [as_file(own, row) for row, own in enumerate(X)])))

    def fit_transform(self, X: Sequence[Any], y: Any = None) -> Float[Array, "n d"]:
        return self.transform(X)

    def text_of(self, classes: Sequence[Any], prompt: str = PROMPT) -> Float[Array, "C d"]:
        """Text prototypes of class names, in their order; {} of the prompt stands for the name."""
        return np.stack([own.unit for own in self._texts(classes, prompt)])

    def constants_of(self, classes: Sequence[Any], prompt: str = PROMPT) -> dict[str, float]:
        """The encoder's logit scale and the mean norm of its text of these class names, where they are known."""
        norm = mean_norm([own.norm for own in self._texts(classes, prompt)])
        constants = {"logit_scale": self._loaded().logit_scale, "anchor_scale": norm}
        return EncoderConstants({name: value for name, value in constants.items() if value is not None})

    def _texts(self, classes: Sequence[Any], prompt: str) -> list[ClassText]:
        names = [str(name) for name in classes]
        found = encode_names(self._loaded(), names, prompt)
        return [found[name] for name in names]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(two_d_array=False, string=True),
            requires_fit=False,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _loaded(self) -> Encoder:
        return self.encoder if isinstance(self.encoder, Encoder) else _loaded(self.encoder, self.device)


@lru_cache(maxsize=1)
def _loaded(name: str, device: str) -> Encoder:
    """The last encoder that was named: cross-validation clones the step for every fold."""
    return load_encoder(name, device=device)


def as_file(picture: Any, row: int = 0) -> PictureFile:
    """A path as it is; a picture of Pillow as one that is read like a file."""
    if isinstance(picture, str | Path):
        return Path(picture)
    return MemoryPicture(f"picture {row}", lambda: picture)
