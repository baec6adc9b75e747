"""Fashion-MNIST from Debian, in the IDX format of its authors."""

import gzip
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from kshot.encode.open.fetch import debian_package
from kshot.encode.open.openset import Listing, OpenSet
from kshot.encode.pictures import grey_picture
from kshot.encode.sources.source import Picture
from kshot.types import Array

CLASSES = ("t-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
FILES = {"pool": "train", "test": "t10k"}
SIDE = 28


def listing(package: Path) -> Listing:
    folder = package / "usr/share/datasets/fashion-mnist"
    pictures = []
    for part, stem in FILES.items():
        images = _idx(folder / f"{stem}-images-idx3-ubyte.gz", 16).reshape(-1, SIDE, SIDE)
        labels = _idx(folder / f"{stem}-labels-idx1-ubyte.gz", 8)
        pictures += [
            Picture(part, f"{stem}/{row:05d}", int(label), partial(grey_picture, images[row]))
            for row, label in enumerate(labels)
        ]
    return Listing(CLASSES, pictures)


def _idx(path: Path, header: int) -> UInt8[Array, " n"]:
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


SET = OpenSet(
    name="fashion-mnist",
    unpack=lambda downloads: debian_package("dataset-fashion-mnist", downloads),
    listing=listing,
    per_class={"pool": 28, "test": 42},
)
