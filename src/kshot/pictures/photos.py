"""List folders of pictures, PHOTOS/CLASS/picture, with the reason for each file that is not used."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from unicodedata import normalize

from kshot.encode.pictures import SUFFIXES, list_pictures, visible_files
from kshot.encode.sources.in_memory import MemoryPicture
from kshot.encode.sources.source import readable_class, text_lines
from kshot.errors import InputError, unknown

MOST_LISTED = 10
MOST_REASONS = 3
# Formats of phones, cameras and drawing programs that cannot be decoded; each such file is listed with the reason.
_UNSUPPORTED = "jxl jp2 svg pdf eps psd xcf tga ico exr raw dng cr2 cr3 nef nrw arw orf rw2 raf pef srw"
UNSUPPORTED = frozenset(f".{suffix}" for suffix in _UNSUPPORTED.split())
TRAIN = ("train", "training")
TEST = ("test", "testing", "val", "valid", "validation")
# Folder names of collections of pictures; hardly ever names of what a picture shows.
_COLLECTIONS = (
    "photos photo pictures picture images image img imgs data dataset datasets new old raw originals unsorted misc "
    "download downloads dcim camera export exports labelled labeled unlabelled unlabeled"
)
COLLECTIONS = frozenset(_COLLECTIONS.split())


@dataclass(frozen=True, slots=True)
class Photo:
    """One picture file of one class, or one in memory; `name` is its path below the folder."""

    path: Path | MemoryPicture
    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Folder:
    """Class names in the order of their folders, their picture files, and why other files are not used."""

    classes: tuple[str, ...]
    photos: tuple[Photo, ...]
    unused: tuple[str, ...]


def folder_layout(root: Path) -> tuple[Path, Path | None, tuple[str, ...]]:
    """The folder to learn from, the folder to test on if there is one, and notes for the user.

    ROOT/CLASS/picture and ROOT/train/CLASS/picture beside ROOT/test/CLASS/picture are recognised. A folder one level
    too high is refused, because every class would be a mixture of all.
    """
    folders = {path.name.lower(): path for path in visible_folders(root)}
    train, test = (next((folders[name] for name in names if name in folders), None) for names in (TRAIN, TEST))
    if train is not None and len(visible_folders(train)) > 1 and folders.keys() <= {*TRAIN, *TEST}:
        used = f"learns from {train.name}/" + (f" and is tested on {test.name}/" if test else "")
        return train, test, (f"{root}: {used}.", *_loose_pictures(train))
    nested = [folder for folder in folders.values() if _holds_classes(folder)]
    if nested and (len(folders) == 1 or folders.keys() <= COLLECTIONS.union(TRAIN, TEST)):
        likely = max(nested, key=lambda folder: (len(visible_folders(folder)), folder.name))
        raise InputError(
            f"{root} looks one level too high: its folders ({listed([path.name for path in folders.values()])}) hold "
            f"folders of pictures. Did you mean {likely}?"
        )
    odd = [path.name for name, path in folders.items() if name in COLLECTIONS]
    notes = _loose_pictures(root)
    if odd:
        what = "looks like a collection" if len(odd) == 1 else "look like collections"
        notes += (f"{', '.join(odd)} {what}, not like a class: the folders' names are what the head learns to say.",)
    return root, None, notes


def visible_folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))


def list_photos(root: Path, names: Path | None = None, least_classes: int = 2) -> Folder:
    """Every class folder with its pictures.

    `names` is a file of FOLDER=NAME lines, for names that a folder cannot have or that the text encoder understands
    better.
    """
    files = {folder.name: list_pictures(folder) for folder in visible_folders(existing_folder(root))}
    unused = _unused_files(root)
    why = "".join(f" {reason}" for reason in unused[:MOST_REASONS])
    if not any(files.values()):
        raise InputError(f"{root} holds no pictures. Expected {root}/CLASS/picture.jpg.{why}")
    empty = [name for name, own in files.items() if not own]
    if empty:
        raise InputError(f"no pictures in {listed(empty)}. Add at least one to each, or remove the folder.{why}")
    _check_utf8([*files, *(str(path.relative_to(root)) for own in files.values() for path in own)])
    classes = _class_names(list(files), names)
    if len(classes) < least_classes:
        raise InputError(f"{root} holds one class ({', '.join(classes)}); a classifier needs at least two folders.")
    photos = (
        Photo(path, normalize("NFC", path.relative_to(root).as_posix()), label)
        for label, own in zip(classes, files.values(), strict=True)
        for path in own
    )
    return Folder(classes, tuple(photos), unused)


def existing_folder(root: Path) -> Path:
    if not root.is_dir():
        raise InputError(f"there is no folder {root}. Give a folder that holds one folder of pictures per class.")
    return root


def listed(items: Sequence[str]) -> str:
    """The first ten of many, and how many more there are."""
    more = f" and {len(items) - MOST_LISTED} more" if len(items) > MOST_LISTED else ""
    return ", ".join(items[:MOST_LISTED]) + more


def copy_sample(target: Path) -> int:
    """Copy 60 public-domain drawings, TARGET/photos/CLASS/… to learn from and TARGET/new/… to try; count them."""
    if target.exists() and any(target.iterdir() if target.is_dir() else [target]):
        raise InputError(f"{target} exists and is not empty. Name another folder.")
    with as_file(files("kshot.pictures").joinpath("sample")) as source:
        shutil.copytree(source, target, dirs_exist_ok=True)
    return sum(1 for _ in target.rglob("*.png"))


def _holds_classes(folder: Path) -> bool:
    """Whether all pictures of a folder are in two or more folders below it."""
    inside = [own for path in visible_folders(folder) if (own := list_pictures(path))]
    return len(inside) > 1 and len(list_pictures(folder)) == sum(map(len, inside))


def _loose_pictures(root: Path) -> tuple[str, ...]:
    loose = [path.name for path in list_pictures(root) if path.parent == root]
    if not loose:
        return ()
    return (f"{len(loose)} pictures lie in {root} itself and belong to no class: {listed(loose)}. They are not used.",)


def _unused_files(root: Path) -> tuple[str, ...]:
    """Why pictures of unsupported formats and broken links are not used; hidden files are not mentioned."""
    reasons = []
    for folder in sorted(path for path in root.iterdir() if not path.name.startswith(".")):
        for path in sorted(visible_files(folder)) if folder.is_dir() else [folder]:
            suffix = path.suffix.lower()
            if path.is_symlink() and not path.exists() and (path == folder or suffix in SUFFIXES | UNSUPPORTED):
                reasons.append(f"{path} is a link to something that is not there.")
            elif suffix in UNSUPPORTED and path != folder and path.is_file():
                reasons.append(f"{path}: {suffix[1:].upper()} is not read; convert it to JPEG or PNG.")
    return tuple(reasons)


def _check_utf8(names: Sequence[str]) -> None:
    """Refuse names that a head file cannot keep, before hours of encoding."""
    shown = [os.fsencode(name).decode("utf-8", "backslashreplace") for name in names]
    strange = [text for text, name in zip(shown, names, strict=True) if text != name]
    if strange:
        raise InputError(f"names that are not UTF-8 cannot be kept in a head: {listed(strange)}. Rename them.")


def _class_names(folders: Sequence[str], names: Path | None) -> tuple[str, ...]:
    composed = [normalize("NFC", folder) for folder in folders]
    given = _read_names(names, composed) if names is not None else {}
    shown = tuple(given.get(folder) or readable_class(folder) for folder in composed)
    twice = sorted({name for name in shown if shown.count(name) > 1})
    if twice:
        raise InputError(f"several folders share the name {listed(twice)}. Tell them apart with --names.")
    return shown


def _read_names(file: Path, folders: Sequence[str]) -> Mapping[str, str]:
    given = {}
    for line in text_lines(file):
        folder, equals, name = (part.strip() for part in normalize("NFC", line).partition("="))
        if not (equals and name):
            raise InputError(f"{file}: '{line}' is not of the form FOLDER=NAME.")
        if folder not in folders:
            raise InputError(f"{file}: {unknown('folder', folder, folders, 'Write FOLDER=NAME.')}")
        given[folder] = name
    return given
