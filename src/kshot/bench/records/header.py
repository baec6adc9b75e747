"""study.json, which says what belongs into a records folder; a copy beside it is there for the day it is lost."""

import json
from pathlib import Path
from typing import Any

from kshot.bench.study import Study, study_from_json
from kshot.errors import StudyError
from kshot.files import write_text
from kshot.seal import json_seal

NAME, COPY = "study.json", "study-copy.json"
NEEDED = ("hash", "study", "dropped", "features")


def write_header(folder: Path, content: dict[str, Any]) -> None:
    """Sealed, and twice: the copy last, so that one of the two is whole whenever power fails."""
    text = json.dumps({**content, "seal": json_seal(content)}, indent=1) + "\n"
    for name in (NAME, COPY):
        write_text(folder / name, text)


def read_header(folder: Path, name: str = NAME) -> dict[str, Any]:
    """What stands in it; a changed letter is noticed."""
    path = folder / name
    if not path.is_file():
        lost = (folder / "cells").is_dir() or (folder / "compact").is_dir()
        step = (
            f"`kshot check --records {folder} --repair` brings it back" if lost else "Run `kshot run` first"
        )
        raise StudyError(f"{folder} is not a records folder: it has no study.json. {step}.")
    try:
        header = {"extends": [], **json.loads(path.read_text(encoding="utf-8"))}
        lacks = [key for key in NEEDED if key not in header]
        seal = header.pop("seal", None)
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if lacks:
        raise _damaged(path, f"it lacks {', '.join(lacks)}")
    if seal not in (None, json_seal(header)):
        raise _damaged(path, "it was changed after it was written")
    return header


def stored_study(folder: Path) -> Study:
    """The study that the header holds; its hash must be the one beside it."""
    header = read_header(folder)
    try:
        study = study_from_json(json.dumps(header["study"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder / NAME, f"it holds no study: {type(error).__name__} {error}") from error
    return study


def restore_header(folder: Path) -> bool:
    """Bring a lost or damaged header back from its copy; whether that was possible."""
    try:
        content = read_header(folder, COPY)
    except StudyError:
        return False
    write_header(folder, content)
    return True


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path} is damaged ({why}). `kshot check --records {path.parent} --repair` brings its copy back. "
        "Choose another --records folder where there is none."
    )
