"""A CSV file with columns `path`, `label` and, where there are splits, `part`."""

import csv
from functools import partial
from pathlib import Path

from kshot.encode.pictures import decode
from kshot.encode.sources.picture_folder import PARTS
from kshot.encode.sources.source import Listed, Picture, path_below
from kshot.errors import InputError

COLUMNS = ("path", "label")


def csv_source(file: Path) -> Listed:
    """Paths are relative to the CSV file and stay below its folder; the path is the id, the label the class."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.DictReader(opened)
            named = list(reader.fieldnames or ())
            lines = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} is not a CSV file in UTF-8 ({error}). Save it as UTF-8.") from None
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
