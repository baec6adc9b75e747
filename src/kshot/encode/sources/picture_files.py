"""Picture files: in folders ROOT/CLASS or ROOT/{train,test}/CLASS, or listed in a CSV file.

The CSV file has the columns `path`, `label` and, where there are splits, `part`.
"""

from functools import partial
from pathlib import Path

from kshot.encode.pictures import decode, list_pictures
from kshot.encode.sources.source import Listed, Picture, csv_rows, path_below, read_text, readable_class
from kshot.errors import InputError

PARTS = {"train": "pool", "pool": "pool", "test": "test", "val": "test"}
COLUMNS = ("path", "label")


def folder_source(root: Path) -> Listed:
    """Pictures in the order of their paths, which are their ids; without train and test all are one part."""
    splits = {name: root / name for name in PARTS if (root / name).is_dir()}
    parts = {PARTS[name]: path for name, path in splits.items()}
    if splits and (len(parts) < len(splits) or len(parts) < 2):
        raise InputError(f"{root} has {', '.join(splits)}; needed are one of train, pool and one of test, val.")
    pictures = {
        path: (part, path.relative_to(base).parts[0])
        for part, base in (parts or {"all": root}).items()
        for path in list_pictures(base)
        if path.parent != base
    }
    folders = sorted({name for _, name in pictures.values()})
    classes: dict[str, str] = {}
    for folder in folders:
        if (other := classes.setdefault(readable_class(folder), folder)) != folder:
            raise InputError(
                f"folders {other} and {folder} would both be class '{readable_class(folder)}'. Rename one."
            )
    label = {name: number for number, name in enumerate(folders)}
    rows = [
        Picture(part, path.relative_to(root).as_posix(), label[name], partial(decode, path, str(path)))
        for path, (part, name) in pictures.items()
    ]
    return Listed(str(root), tuple(classes), rows)


def csv_source(file: Path) -> Listed:
    """Paths are relative to the CSV file and stay below its folder; the path is the id, the label the class."""
    named, lines = csv_rows(read_text(file), file)
    if any(name not in named for name in COLUMNS):
        found = ", ".join(named) or "none"
        raise InputError(f"{file} has columns {found}; needed are path, label and optionally part (train or test).")
    short = [number for number, line in enumerate(lines, start=2) if None in map(line.get, COLUMNS)]
    if short:
        raise InputError(f"{file} line {short[0]} has fewer fields than the first line names.")
    for line in lines:
        line["label"] = line["label"].strip()
    classes = sorted({line["label"] for line in lines})
    label = {name: number for number, name in enumerate(classes)}
    rows = [_row(file, number, line, label) for number, line in enumerate(lines, start=2)]
    if "all" in (parts := {row.part for row in rows}) and len(parts) > 1:
        raise InputError(f"{file} names a part in some lines only; name train or test in all lines or none.")
    return Listed(str(file), tuple(classes), rows)


def _row(file: Path, number: int, line: dict[str, str], label: dict[str, int]) -> Picture:
    part = line.get("part") or "all"
    if part not in (*PARTS, "all"):
        raise InputError(f"{file} line {number}: part '{part}'; allowed are {', '.join(PARTS)}.")
    if "\0" in line["path"]:
        raise InputError(f"{file} line {number}: a path with a zero byte names no file.")
    path = path_below(file.parent, line["path"], f"{file} line {number}")
    load = partial(decode, path, f"{file} line {number}: {path.name}")
    return Picture(PARTS.get(part, part), line["path"], label[line["label"]], load)
