"""A folder of one's own pictures, PHOTOS/CLASS/picture, read with patience: whatever cannot be used is listed."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from unicodedata import normalize

from kshot.encode.pictures import list_pictures
from kshot.encode.sources.source import readable_class
from kshot.errors import InputError, unknown
from kshot.pictures.layout import visible_folders
from kshot.pictures.unread import unread_files

MOST_LISTED = 10
MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Photo:
    """One picture file of one class; `name` is its path below the folder."""

    path: Path
    name: str
    label: int


@dataclass(frozen=True, slots=True)
class Folder:
    """Class names in the order of their folders, their picture files, and why others are not among them."""

    classes: tuple[str, ...]
    photos: tuple[Photo, ...]
    unused: tuple[str, ...]


def list_photos(root: Path, names: Path | None = None, least_classes: int = 2) -> Folder:
    """Every class folder with its pictures; `names` is a file of FOLDER=NAME lines for names that a folder
    cannot have, or that the text encoder understands better."""
    files = {folder.name: list_pictures(folder) for folder in visible_folders(existing_folder(root))}
    unused = unread_files(root)
    why = "".join(f" {reason}" for reason in unused[:MOST_REASONS])
    if not any(files.values()):
        raise InputError(f"{root} holds no pictures. Expected {root}/CLASS/picture.jpg.{why}")
    empty = [name for name, own in files.items() if not own]
    if empty:
        raise InputError(f"no pictures in {listed(empty)}. Add at least one to each, or remove the folder.{why}")
    _check_storable([*files, *(str(path.relative_to(root)) for own in files.values() for path in own)])
    classes = _shown_names(list(files), names)
    if len(classes) < least_classes:
        raise InputError(f"{root} holds one class ({', '.join(classes)}); a classifier needs at least two folders.")
    return Folder(
        classes,
        tuple(
            Photo(path, normalize("NFC", path.relative_to(root).as_posix()), label)
            for label, own in enumerate(files.values())
            for path in own
        ),
        unused,
    )


def existing_folder(root: Path) -> Path:
    if not root.is_dir():
        raise InputError(f"there is no folder {root}. Give a folder that holds one folder of pictures per class.")
    return root


def listed(items: Sequence[str]) -> str:
    """The first few of many, and how many more there are."""
    more = f" and {len(items) - MOST_LISTED} more" if len(items) > MOST_LISTED else ""
    return ", ".join(items[:MOST_LISTED]) + more


def _check_storable(names: Sequence[str]) -> None:
    """A head file keeps names as UTF-8; other bytes are told before hours of encoding."""
    strange = [name for name in names if not _is_text(name)]
    if strange:
        shown = listed([os.fsencode(name).decode("utf-8", "backslashreplace") for name in strange])
        raise InputError(f"names that are not UTF-8 cannot be kept in a head: {shown}. Rename them.")


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown_names(folders: Sequence[str], names: Path | None) -> tuple[str, ...]:
    """Names are compared in one form: file systems and editors write an accent as one character or as two."""
    composed = [normalize("NFC", folder) for folder in folders]
    given = _read_names(names, composed) if names is not None else {}
    shown = tuple(given.get(folder) or readable_class(folder) for folder in composed)
    twice = sorted({name for name in shown if shown.count(name) > 1})
    if twice:
        raise InputError(f"several folders share the name {listed(twice)}. Tell them apart with --names.")
    return shown


def _read_names(file: Path, folders: Sequence[str]) -> Mapping[str, str]:
    try:
        # Some editors begin a file with a mark that is no part of the first name.
        text = normalize("NFC", file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not a readable text file ({error}).") from None
    given = {}
    for line in (line.strip() for line in text.splitlines() if line.strip()):
        folder, equals, name = (part.strip() for part in line.partition("="))
        if not (equals and name):
            raise InputError(f"{file}: '{line}' is not of the form FOLDER=NAME.")
        if folder not in folders:
            raise InputError(f"{file}: {unknown('folder', folder, folders, 'Write FOLDER=NAME.')}")
        given[folder] = name
    return given


def copy_sample(target: Path) -> int:
    """Six classes of public-domain drawings: TARGET/photos/CLASS/… to learn from, TARGET/new/… to try.

    Returns how many pictures there are.
    """
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise InputError(f"{target} exists and is not empty. Name another folder.")
    with as_file(files("kshot.pictures").joinpath("sample")) as source:
        shutil.copytree(source, target, dirs_exist_ok=True)
    return sum(1 for _ in target.rglob("*.png"))
