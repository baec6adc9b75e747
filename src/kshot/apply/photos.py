"""A folder of one's own pictures, PHOTOS/CLASS/picture, read with patience: whatever cannot be used is listed."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kshot.encode.pictures import list_pictures
from kshot.encode.sources.base import readable_class
from kshot.errors import InputError, unknown

MOST_LISTED = 10


@dataclass(frozen=True, slots=True)
class Photo:
    """One picture file of one class; `name` is its path below the folder."""

    path: Path
    name: str
    label: int


@dataclass(frozen=True, slots=True)
class Folder:
    """Class names in the order of their folders, and their picture files."""

    classes: tuple[str, ...]
    photos: tuple[Photo, ...]


def list_photos(root: Path, names: Path | None = None) -> Folder:
    """Every class folder with its pictures; `names` is a file of FOLDER=NAME lines for names that a folder
    cannot have, or that the text encoder understands better."""
    if not root.is_dir():
        raise InputError(
            f"there is no folder {root}. Give a folder that holds one folder of pictures per class."
        )
    files = {
        folder.name: list_pictures(folder)
        for folder in sorted(root.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")
    }
    if not any(files.values()):
        raise InputError(f"{root} holds no pictures. Expected {root}/CLASS/picture.jpg.")
    empty = [name for name, own in files.items() if not own]
    if empty:
        raise InputError(f"no pictures in {listed(empty)}. Add at least one to each, or remove the folder.")
    classes = _shown_names(list(files), names)
    if len(classes) < 2:
        raise InputError(
            f"{root} holds one class ({', '.join(classes)}); a classifier needs at least two folders."
        )
    return Folder(
        classes,
        tuple(
            Photo(path, unicodedata.normalize("NFC", path.relative_to(root).as_posix()), label)
            for label, own in enumerate(files.values())
            for path in own
        ),
    )


def listed(items: Sequence[str]) -> str:
    """The first few of many, and how many more there are."""
    more = f" and {len(items) - MOST_LISTED} more" if len(items) > MOST_LISTED else ""
    return ", ".join(items[:MOST_LISTED]) + more


def _shown_names(folders: Sequence[str], names: Path | None) -> tuple[str, ...]:
    given = _read_names(names, folders) if names is not None else {}
    shown = tuple(given.get(f) or readable_class(unicodedata.normalize("NFC", f)) for f in folders)
    twice = sorted({name for name in shown if shown.count(name) > 1})
    if twice:
        raise InputError(f"several folders share the name {listed(twice)}. Tell them apart with --names.")
    return shown


def _read_names(file: Path, folders: Sequence[str]) -> Mapping[str, str]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not a readable text file ({error}).") from None
    given = {}
    for line in lines:
        folder, equals, name = (part.strip() for part in line.partition("="))
        if not (equals and name):
            raise InputError(f"{file}: '{line}' is not of the form FOLDER=NAME.")
        if folder not in folders:
            raise InputError(f"{file}: {unknown('folder', folder, folders, 'Write FOLDER=NAME.')}")
        given[folder] = name
    return given
