"""Bytes to RGB pictures, with a guard in front of the decoder."""

import io
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from kshot.errors import InputError, need
from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

# Decoders of plain raster formats only: no document format that starts another program.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "PPM", "TIFF", "AVIF", "HEIF")
_SUFFIXES = "png jpg jpeg jpe jfif webp bmp gif ppm pgm pnm tif tiff avif heic heif"
SUFFIXES = frozenset(f".{suffix}" for suffix in _SUFFIXES.split())
MOST_PIXELS = 100_000_000
SAVE_AGAIN = "Save it with 8 or 16 bits."


def list_pictures(folder: Path) -> list[Path]:
    """Picture files at any depth, sorted by path, without hidden ones (thumbnails, resource forks)."""
    return sorted(path for path in visible_files(folder) if path.suffix.lower() in SUFFIXES and path.is_file())


def visible_files(folder: Path, entered: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """All files below a folder whose names do not begin with a dot; links to folders are followed once."""
    if (real := folder.resolve()) in entered:
        return
    inside = entered | {real}
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from visible_files(path, inside)
        else:
            yield path


def decode(content: bytes | Path, name: str, *, most_pixels: int = MOST_PIXELS, as_seen: bool = False) -> "Image":
    """Decode to RGB on white; a damaged picture or one of too many pixels raises an error with its name.

    `as_seen` decodes to what a viewer shows: turned as the camera noted (EXIF), and greys of more than 8 bits scaled
    instead of clipped. The published pipelines do neither.
    """
    need("PIL", "encode")
    from PIL import Image, UnidentifiedImageError

    _register_heif()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = io.BytesIO(content) if isinstance(content, bytes) else content
            with Image.open(file, formats=FORMATS) as picture:
                if picture.width * picture.height > most_pixels:
                    raise InputError(
                        f"{name} declares {picture.width} × {picture.height} pixels; at most "
                        f"{most_pixels:,} are decoded. Shrink the picture or remove it."
                    )
                return rgb_as_seen(picture, name) if as_seen else on_white(picture)
    except UnidentifiedImageError:
        raise InputError(f"{name} is not a readable picture (none of {', '.join(FORMATS)}).") from None
    except InputError:
        raise
    except Exception as error:
        # Decoders of damaged files raise whatever they stumble over.
        raise InputError(f"{name} is not a readable picture ({error}).") from None


@cache
def _register_heif() -> None:
    """Let Pillow read HEIC, the format of phones, through pillow_heif."""
    need("pillow_heif", "encode").register_heif_opener(thumbnails=False)


def rgb_as_seen(picture: "Image", name: str) -> "Image":
    """RGB on white of what a viewer shows."""
    from PIL import Image, ImageOps

    turned = ImageOps.exif_transpose(picture)
    if turned.mode in ("I", "F") or turned.mode.startswith("I;16"):
        turned = Image.fromarray(_eight_bits(np.asarray(turned), turned.mode, picture.format or "", name))
    return on_white(turned)


def _eight_bits(grey: Array, mode: str, format: str, name: str) -> UInt8[Array, "H W"]:
    """Scaled where white is known: 65535 of 16 bits, which Pillow may hold in 32, and 1 of fractions."""
    if mode == "F" and grey.size and grey.min() >= 0 and grey.max() <= 1:
        return np.round(grey * 255).astype(np.uint8)
    if mode == "F":
        raise InputError(f"{name} holds fractions beyond 0 to 1, so its white is unknown. {SAVE_AGAIN}")
    if mode == "I" and format == "TIFF":
        raise InputError(f"{name} holds signed or 32-bit greys, so its white is unknown. {SAVE_AGAIN}")
    return (grey >> 8).astype(np.uint8)


def on_white(picture: "Image") -> "Image":
    """Convert to RGB, with white behind transparent pixels."""
    from PIL import Image

    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture.convert("RGB")
    layered = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered).convert("RGB")


def grey_picture(values: UInt8[Array, "H W"]) -> "Image":
    from PIL import Image

    return Image.fromarray(values).convert("RGB")
