"""CoOp's split files {"train": [[path, label, class name], …], "val": …, "test": …}, and their pictures as a source."""

import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kshot.encode.pictures import decode
from kshot.encode.sources.source import Listed, Picture, path_below, read_json, readable_class
from kshot.errors import InputError

PROTOCOL = "coop"
PARTS = {"train": "pool", "val": "val", "test": "test"}
# Where the CoOp lineage keeps the pictures, below the folder of the split file.
FOLDERS = (".", "images", "101_ObjectCategories", "2750", "jpg", "SUN397", "UCF-101-midframes")
FOLDERS += ("food-101/images", "data/images")
# Datasets that have other names in the CoOp lineage than in the catalog.
NAMES = {"DescribableTextures": "DTD", "OxfordFlowers": "Flowers102", "OxfordPets": "Pets", "StanfordCars": "Cars"}


class SplitRow(NamedTuple):
    """One picture of a split."""

    path: str
    label: int
    name: str


class CoopSplit(NamedTuple):
    """The rows of train, val and test, and the class names in the order of their labels."""

    train: tuple[SplitRow, ...]
    val: tuple[SplitRow, ...]
    test: tuple[SplitRow, ...]
    classes: tuple[str, ...]


def is_split_file(where: str) -> bool:
    return Path(where).suffix.lower() == ".json" and Path(where).is_file()


def is_split(content: Any) -> bool:
    """Whether a JSON value has the parts of a split."""
    return isinstance(content, dict) and all(isinstance(content.get(part), list) for part in PARTS)


def catalog_name(file: Path) -> str:
    """The dataset after which a split file is named."""
    own = re.sub(r"^split_zhou_", "", file.stem)
    return NAMES.get(own, own)


def read_split(path: Path) -> CoopSplit:
    """Read a split file with one name for each label, labels 0..C−1 and no picture in two parts."""
    content = read_json(path)
    if not is_split(content):
        raise InputError(f"{path} is no CoOp split: it must hold the lists {', '.join(PARTS)}.")
    parts = {part: tuple(_row(entry, part, path) for entry in content[part]) for part in PARTS}
    rows = [row for part in PARTS for row in parts[part]]
    if not rows:
        raise InputError(f"{path} lists no pictures.")
    names: dict[int, str] = {}
    for row in rows:
        if names.setdefault(row.label, row.name) != row.name:
            raise InputError(f"{path} gives label {row.label} two names: {names[row.label]} and {row.name}.")
    if sorted(names) != list(range(len(names))):
        raise InputError(f"{path} has {len(names)} labels up to {max(names)}; they must be 0..C−1.")
    if len({row.path for row in rows}) < len(rows):
        raise InputError(f"{path} lists a picture twice.")
    return CoopSplit(**parts, classes=tuple(names[label] for label in range(len(names))))


def coop_source(file: Path) -> Listed:
    """Pictures in the order of the split, with their paths as ids; train is the pool."""
    split = read_split(file)
    rows = [(PARTS[part], row) for part in PARTS for row in getattr(split, part)]
    folder = _folder(file, [row for _, row in rows])
    pictures, absent = [], []
    for part, row in rows:
        path = path_below(folder, row.path, str(file))
        if not path.is_file():
            absent.append(row.path)
        pictures.append(Picture(part, row.path, row.label, partial(decode, path, f"{file}: {row.path}")))
    if absent:
        raise InputError(f"{file} lists {len(absent)} pictures that are not in {folder}, first {absent[0]}.")
    return Listed(str(file), tuple(map(readable_class, split.classes)), pictures)


def _folder(file: Path, rows: list[SplitRow]) -> Path:
    """The known folder that holds any picture of the split."""
    for row in rows:
        for folder in (file.parent / name for name in FOLDERS):
            if (folder / row.path).is_file():
                return folder
    raise InputError(
        f"{file} lists {rows[0].path}, and no picture of it lies beside it. Put the file where the CoOp lineage does: "
        f"beside one of the folders {', '.join(FOLDERS[1:])}, or beside the pictures."
    )


def _row(entry: object, part: str, path: Path) -> SplitRow:
    if not isinstance(entry, list) or [type(value) for value in entry] != [str, int, str]:
        raise InputError(f"{path}: {part} holds {entry!r}; each entry is [path, label, class name].")
    row = SplitRow(*entry)
    if not row.name.strip():
        raise InputError(f"{path}: label {row.label} of {row.path} has no name.")
    return row
