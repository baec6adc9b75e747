"""From a picture, or a seeded augmented view of it, to the numbers an encoder reads; written once for all encoders."""

import hashlib
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

_TRIES = 10
_LOG_ASPECT = math.log(4 / 3)


class AsGiven:
    """Pictures as they are, for encoders whose own code prepares them."""

    def __call__(self, picture: "Image") -> Any:
        return picture

    def view(self, picture: "Image", box: tuple[int, int, int, int], flip: bool) -> Any:
        """An augmented view: a box of the picture, perhaps mirrored."""
        from PIL import ImageOps

        cut = picture.crop(box)
        return self(ImageOps.mirror(cut) if flip else cut)


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Geometry and scaling of the input.

    `shortest` scales the shorter side to `resize_to` and crops the centre; `squash` scales both sides directly.
    Scaling is Pillow's, as in the encoders' own pipelines; pixels become (value/255 − mean)/std.
    """

    pixels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize: Literal["shortest", "squash"] = "shortest"
    interpolation: Literal["bicubic", "bilinear"] = "bicubic"
    resize_to: int | None = None

    def __call__(self, picture: "Image") -> Float[Array, "3 H W"]:
        if self.resize == "squash":
            return self._scale(picture.resize((self.pixels, self.pixels), self._filter()))
        shorter = self.resize_to or self.pixels
        width, height = picture.size
        # The longer side is cut down, not rounded: torchvision's Resize does so, and one pixel moves the crop.
        size = (shorter, int(shorter * height / width)) if width <= height else (int(shorter * width / height), shorter)
        resized = picture.resize(size, self._filter()) if size != picture.size else picture
        left, top = (round((side - self.pixels) / 2) for side in resized.size)
        return self._scale(resized.crop((left, top, left + self.pixels, top + self.pixels)))

    def view(self, picture: "Image", box: tuple[int, int, int, int], flip: bool) -> Float[Array, "3 H W"]:
        """An augmented view: a box of the picture, scaled to the input and perhaps mirrored."""
        from PIL import Image

        # Cropped first: scaling with a box would let the filter read across its border.
        cut = picture.crop(box).resize((self.pixels, self.pixels), self._filter())
        return self._scale(cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else cut)

    def facts(self) -> dict[str, Any]:
        """For the manifest, in types that JSON gives back unchanged."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()} | {
            "transparent": "white"
        }

    def _filter(self) -> Any:
        from PIL import Image

        return getattr(Image.Resampling, self.interpolation.upper())

    def _scale(self, picture: "Image") -> Float[Array, "3 H W"]:
        values = np.asarray(picture, np.float32).transpose(2, 0, 1) / np.float32(255)
        mean, std = (np.asarray(v, np.float32)[:, None, None] for v in (self.mean, self.std))
        return (values - mean) / std


class View(NamedTuple):
    """Left, top, right, bottom in pixels; and whether to mirror."""

    box: tuple[int, int, int, int]
    flip: bool


def draw_view(picture_id: str, number: int, size: tuple[int, int], least_area: float) -> View:
    """Draw a crop: area uniform in [least_area, 1], aspect log-uniform in [3/4, 4/3]; all of it if ten do not fit."""
    digest = hashlib.blake2b(f"{number}\x1f{picture_id}".encode(), digest_size=16).digest()
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "big")))
    width, height = size
    flip = bool(rng.random() < 0.5)
    for _ in range(_TRIES):
        area = width * height * rng.uniform(least_area, 1)
        aspect = math.exp(rng.uniform(-_LOG_ASPECT, _LOG_ASPECT))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1))
            return View((left, top, left + w, top + h), flip)
    return View((0, 0, width, height), flip)
