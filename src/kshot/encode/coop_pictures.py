"""The pictures of a CoOp split as a source: train is the pool, val the validation, test the test."""

import re
from functools import partial
from pathlib import Path

from kshot.encode.coop import CoopSplit, SplitRow, read_split
from kshot.encode.pictures import decode
from kshot.encode.sources.source import Listed, Picture, readable_class
from kshot.errors import InputError
from kshot.files import real_path

PROTOCOL = "coop"
# Where the CoOp lineage keeps the pictures, below the folder of the split file.
FOLDERS = (
    ".",
    "images",
    "101_ObjectCategories",
    "2750",
    "jpg",
    "SUN397",
    "UCF-101-midframes",
    "food-101/images",
    "data/images",
)
# What the lineage calls datasets that the catalog knows under another name.
CATALOG_NAMES = {
    "DescribableTextures": "DTD",
    "OxfordFlowers": "Flowers102",
    "OxfordPets": "Pets",
    "StanfordCars": "Cars",
}


def is_split_file(where: str) -> bool:
    return Path(where).suffix.lower() == ".json" and Path(where).is_file()


def catalog_name(file: Path) -> str:
    """The dataset that a split file is called after."""
    own = re.sub(r"^split_zhou_", "", file.stem)
    return CATALOG_NAMES.get(own, own)


def coop_source(file: Path) -> Listed:
    """Pictures in the order of the split; their paths in it are their ids."""
    split = read_split(file)
    folder = _folder(file, split)
    inside = real_path(folder)
    parts = {"pool": split.train, "val": split.val, "test": split.test}
    rows = [_picture(file, inside, part, row) for part, listed in parts.items() for row in listed]
    absent = [row.id for row in rows if not (inside / row.id).is_file()]
    if absent:
        raise InputError(f"{file} lists {len(absent)} pictures that are not in {folder}, first {absent[0]}.")
    return Listed(str(file), tuple(map(readable_class, split.classes)), rows)


def _folder(file: Path, split: CoopSplit) -> Path:
    """The known folder that holds any picture of the split."""
    known = [file.parent / name for name in FOLDERS]
    for row in (*split.train, *split.test):
        for folder in known:
            if (folder / row.path).is_file():
                return folder
    raise InputError(
        f"{file} lists {(*split.train, *split.test)[0].path}, and no picture of it lies beside it. Put the file "
        f"where the CoOp lineage does: beside one of the folders {', '.join(FOLDERS[1:])}, or beside the pictures."
    )


def _picture(file: Path, folder: Path, part: str, row: SplitRow) -> Picture:
    path = real_path(folder / row.path)
    if not path.is_relative_to(folder):
        raise InputError(f"{file}: '{row.path}' lies outside {folder}.")
    return Picture(part, row.path, row.label, partial(decode, path, f"{file}: {row.path}"))
