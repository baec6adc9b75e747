"""Shades of grey as a picture."""

from typing import TYPE_CHECKING

from jaxtyping import UInt8

from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image


def grey_picture(values: UInt8[Array, "H W"]) -> "Image":
    from PIL import Image

    return Image.fromarray(values).convert("RGB")
