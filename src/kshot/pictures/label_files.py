"""Read and write labels in files of other programs: CSV, Label Studio's tasks, FiftyOne's image classification.

A name in such a file is looked up among the pictures of the folder; no other file is opened.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize
from urllib.parse import parse_qs, quote, unquote, urlsplit

from kshot.encode.pictures import list_pictures
from kshot.encode.sources.source import csv_rows, read_text
from kshot.errors import InputError, unknown
from kshot.pictures.photos import Folder, Photo, existing_folder, listed

PICTURE_COLUMNS = ("picture", "image", "file", "filename", "filepath", "path")
LABEL_COLUMNS = ("label", "class", "choice")
# Label Studio puts this before the name of an uploaded picture.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")
Pairs = Iterator[tuple[str, str]]


def labelled_photos(root: Path, file: Path) -> Folder:
    """The pictures of the folder that the file labels, and which labels and pictures have no partner."""
    found = {normalize("NFC", p.relative_to(root).as_posix()): p for p in list_pictures(existing_folder(root))}
    lookup = _lookup(found, file)
    labels: dict[str, str] = {}
    missing = []
    for named, label in read_label_file(file):
        name = lookup(named)
        if name is None:
            missing.append(named)
        elif labels.setdefault(name, label) != label:
            raise InputError(f"{file} gives {name} two labels, {labels[name]} and {label}. Keep one of them.")
    classes = tuple(sorted(set(labels.values())))
    if len(classes) < 2:
        raise InputError(
            f"{file} labels {len(labels)} pictures of {root} with {len(classes)} classes; a classifier needs at least "
            f"two.{f' Not found there: {listed(missing)}.' if missing else ''}"
        )
    unused = [f"{name} is labelled in {file.name}, but there is no such picture." for name in missing]
    bare = [name for name in found if name not in labels]
    if bare:
        unused.append(f"{len(bare)} pictures have no label in {file.name}: {listed(bare)}.")
    photos = (Photo(found[name], name, label) for name, label in sorted(labels.items()))
    return Folder(classes, tuple(photos), tuple(unused))


def read_label_file(file: Path) -> Pairs:
    """Pairs of a picture's name, as the file writes it, and its label."""
    text = normalize("NFC", read_text(file))
    if not text.lstrip().startswith(("[", "{")):
        return _from_csv(text, file)
    try:
        stored = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not readable JSON ({error}).") from None
    return _from_label_studio(stored, file) if isinstance(stored, list) else _from_fiftyone(stored, file)


def write_label_file(names: Sequence[str], labels: Sequence[str], classes: Sequence[str], form: str) -> str:
    """The text of a file of labels in one of `FORMATS`."""
    if form not in FORMATS:
        raise InputError(unknown("format of labels", form, FORMATS, "Give one of them."))
    return FORMATS[form](names, labels, classes)


def _lookup(found: Mapping[str, Path], file: Path) -> Callable[[str], str | None]:
    """Find a picture by the longest end of a path or address, with or without suffix, or by a unique file name.

    A name without suffix that two pictures share is refused.
    """
    candidates: dict[str, list[str]] = {}
    for name in found:
        candidates.setdefault(str(PurePosixPath(name).with_suffix("")), []).append(name)
    alone = Counter(PurePosixPath(name).name for name in found)
    for name in found:
        if alone[own := PurePosixPath(name).name] == 1:
            candidates.setdefault(own, [name])
    candidates |= {name: [name] for name in found}

    def lookup(named: str) -> str | None:
        parts = [part for part in _path_of(named).split("/") if part not in ("", ".")]
        for start in range(len(parts)):
            for last in (parts[-1], _UPLOADED.sub("", parts[-1])):
                names = candidates.get("/".join([*parts[start:-1], last]), ())
                if len(names) > 1:
                    raise InputError(
                        f"{file} labels {named}, which may be {' or '.join(names)}. Rename one of them, or give a "
                        "CSV file with suffixes."
                    )
                if names:
                    return names[0]
        return None

    return lookup


def _path_of(named: str) -> str:
    """The path within an address; Label Studio puts that of a local file into the query, ?d=PATH."""
    if "://" not in named and not named.startswith("/data/"):
        return named.replace("\\", "/")
    address = urlsplit(named)
    return parse_qs(address.query).get("d", [unquote(address.path)])[0]


def _from_csv(text: str, file: Path) -> Pairs:
    named, rows = csv_rows(text, file)
    columns = {(name or "").strip().lower(): name for name in named}
    picture, label = (
        next((columns[name] for name in wanted if name in columns), None) for wanted in (PICTURE_COLUMNS, LABEL_COLUMNS)
    )
    if picture is None or label is None:
        raise InputError(f"{file} needs a first line with the columns picture,label; it has {listed([*columns])}.")
    for row in rows:
        if row[picture] and row[label]:
            yield row[picture].strip(), row[label].strip()


def _from_label_studio(tasks: Any, file: Path) -> Pairs:
    """The choice of each task's last annotation that was not cancelled."""
    for number, task in enumerate(tasks, 1):
        try:
            image = task["data"].get("image") or next(v for v in task["data"].values() if isinstance(v, str))
            given = [one for one in task.get("annotations", ()) if not one.get("was_cancelled")]
            parts = given[-1]["result"] if given else ()
            chosen = [choice for part in parts if part["type"] == "choices" for choice in part["value"]["choices"]]
        except (KeyError, TypeError, AttributeError, StopIteration) as error:
            raise InputError(
                f"{file}: task {number} is not of Label Studio's JSON export ({type(error).__name__}: {error})."
            ) from None
        if len(chosen) > 1:
            raise InputError(f"{file}: task {number} has {len(chosen)} labels; a picture has one class here.")
        if chosen:
            yield str(image), str(chosen[0])


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"'{name}' is named twice in one object")
    return dict(pairs)


def _from_fiftyone(stored: Any, file: Path) -> Pairs:
    """Names without suffix; a label is a word or its number among the classes."""
    classes, labels = stored.get("classes") or (), stored.get("labels")
    if not isinstance(labels, dict):
        raise InputError(f"{file} is neither Label Studio's list of tasks nor FiftyOne's classes and labels.")
    for name, label in labels.items():
        if isinstance(label, int) and not 0 <= label < len(classes):
            raise InputError(f"{file}: {name} has label {label}; there are {len(classes)} classes.")
        if label is not None:
            yield name, str(classes[label] if isinstance(label, int) else label)


def _to_csv(names: Sequence[str], labels: Sequence[str], classes: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([("picture", "label"), *zip(names, labels, strict=True)])
    return out.getvalue()


def _to_label_studio(names: Sequence[str], labels: Sequence[str], classes: Sequence[str]) -> str:
    def task(name: str, label: str) -> dict[str, Any]:
        chosen = {"from_name": "choice", "to_name": "image", "type": "choices", "value": {"choices": [label]}}
        return {"data": {"image": f"/data/local-files/?d={quote(name)}"}, "annotations": [{"result": [chosen]}]}

    return json.dumps([task(*pair) for pair in zip(names, labels, strict=True)], ensure_ascii=False, indent=1)


def _to_fiftyone(names: Sequence[str], labels: Sequence[str], classes: Sequence[str]) -> str:
    stems = Counter(str(PurePosixPath(name).with_suffix("")) for name in names)
    twice = sorted(stem for stem, count in stems.items() if count > 1)
    if twice:
        raise InputError(f"FiftyOne names pictures without suffix, and {listed(twice)} would be named twice.")
    numbers = {stem: list(classes).index(label) for stem, label in zip(stems, labels, strict=True)}
    return json.dumps({"classes": list(classes), "labels": numbers}, ensure_ascii=False, indent=1)


FORMATS = {"csv": _to_csv, "label-studio": _to_label_studio, "fiftyone": _to_fiftyone}
