"""Seeded augmented views: a random resized crop and a mirror, fixed by the picture's id and the view's number."""

import hashlib
import math
from typing import NamedTuple

import numpy as np

# Least share of the picture's area that a crop keeps. `tip`: the official code of Tip-Adapter, GDA and LP++; `clap`:
# CoOp's trainer, which CLAP, CLIP-Adapter and HOSO use.
RECIPES = {"tip": 0.5, "clap": 0.08}
_TRIES = 10
_LOG_ASPECT = math.log(4 / 3)


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
