"""The 8 × 8 handwritten digits that scikit-learn carries."""

from functools import partial
from pathlib import Path

import numpy as np

from kshot.encode.open.openset import Listing, OpenSet
from kshot.encode.pictures import grey_picture
from kshot.encode.sources.source import Picture

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SIDE = 8
GREYS = 16


def listing(_: Path) -> Listing:
    """Dark ink on white: the library stores ink as 16."""
    from sklearn.datasets import load_digits

    ink, labels = load_digits(return_X_y=True)
    shades = (255 - np.round(np.asarray(ink).reshape(-1, SIDE, SIDE) * (255 / GREYS))).astype(np.uint8)
    pictures = [
        Picture("all", f"{row:04d}", int(label), partial(grey_picture, shades[row])) for row, label in enumerate(labels)
    ]
    return Listing(WORDS, pictures)


SET = OpenSet(name="digits", unpack=lambda downloads: downloads, listing=listing, per_class={"all": 70})
