"""CoOp's split files: {"train": [[path, label, class name], …], "val": …, "test": …}."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from kshot.errors import InputError

PARTS = ("train", "val", "test")


class SplitRow(NamedTuple):
    """One picture of a split."""

    path: str
    label: int
    name: str


class CoopSplit(NamedTuple):
    """The three parts and the class names in the order of their labels."""

    train: tuple[SplitRow, ...]
    val: tuple[SplitRow, ...]
    test: tuple[SplitRow, ...]
    classes: tuple[str, ...]


def is_split(content: Any) -> bool:
    """Whether a JSON value has the parts of a split."""
    return isinstance(content, dict) and all(isinstance(content.get(part), list) for part in PARTS)


def read_split(path: Path) -> CoopSplit:
    """A split file with one name for each label, labels 0..C−1 and no picture in two parts."""
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


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a readable JSON file ({error}).") from None


def _row(entry: object, part: str, path: Path) -> SplitRow:
    if isinstance(entry, list) and [type(value) for value in entry] == [str, int, str]:
        row = SplitRow(*entry)
        if not row.name.strip():
            raise InputError(f"{path}: label {row.label} of {row.path} has no name.")
        return row
    raise InputError(f"{path}: {part} holds {entry!r}; each entry is [path, label, class name].")
