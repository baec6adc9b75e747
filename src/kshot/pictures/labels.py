"""Pictures of one folder with their classes in a CSV file of two columns, path and label."""

from collections import Counter
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from kshot.encode.pictures import list_pictures
from kshot.encode.sources.source import csv_rows, read_text
from kshot.errors import InputError
from kshot.pictures.photos import Folder, Photo, existing_folder, listed

PATH_COLUMNS = ("path", "picture", "image", "file", "filename", "filepath")
LABEL_COLUMNS = ("label", "class", "choice")


def labelled_photos(root: Path, file: Path) -> Folder:
    """The pictures of the folder that the file labels, and which labels and pictures have no partner.

    A path is below ROOT, or a file name that only one picture has; no other file is opened.
    """
    pictures = {normalize("NFC", p.relative_to(root).as_posix()): p for p in list_pictures(existing_folder(root))}
    often = Counter(PurePosixPath(name).name for name in pictures)
    names = {PurePosixPath(name).name: name for name in pictures if often[PurePosixPath(name).name] == 1}
    names |= {name: name for name in pictures}
    labels: dict[str, str] = {}
    missing = []
    for path, label in _pairs(file):
        name = names.get(PurePosixPath(path.replace("\\", "/")).as_posix())
        if name is None:
            missing.append(path)
        elif labels.setdefault(name, label) != label:
            raise InputError(f"{file} gives {name} two labels, {labels[name]} and {label}. Keep one of them.")
    classes = tuple(sorted(set(labels.values())))
    if len(classes) < 2:
        raise InputError(
            f"{file} labels {len(labels)} pictures of {root} with {len(classes)} classes; a classifier needs at least "
            f"two.{f' Not found there: {listed(missing)}.' if missing else ''}"
        )
    unused = [f"{name} is labelled in {file.name}, but there is no such picture." for name in missing]
    bare = [name for name in pictures if name not in labels]
    if bare:
        unused.append(f"{len(bare)} pictures have no label in {file.name}: {listed(bare)}.")
    photos = (Photo(pictures[name], name, label) for name, label in sorted(labels.items()))
    return Folder(classes, tuple(photos), tuple(unused))


def _pairs(file: Path) -> list[tuple[str, str]]:
    header, rows = csv_rows(normalize("NFC", read_text(file)), file)
    columns = {(name or "").strip().lower(): name for name in header}
    path, label = (
        next((columns[name] for name in names if name in columns), None) for names in (PATH_COLUMNS, LABEL_COLUMNS)
    )
    if path is None or label is None:
        raise InputError(f"{file} needs a first line with the columns path,label; it has {listed([*columns])}.")
    return [(row[path].strip(), row[label].strip()) for row in rows if row[path] and row[label]]
