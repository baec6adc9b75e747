"""The header of a records folder, study.json: whose records these are, and whether a study may add to them."""

import json
from pathlib import Path
from typing import Any

from kshot.bench.study import Cell, MethodSpec, Study, study_from_json
from kshot.errors import StudyError
from kshot.files import json_seal, write_text
from kshot.types import BALANCED

NAME, BACKUP = "study.json", "study-copy.json"
NEEDED = ("hash", "study", "dropped", "features")


def write_header(folder: Path, content: dict[str, Any]) -> None:
    """Write study.json and then its backup, so that one of the two is whole whenever power fails."""
    text = json.dumps({**content, "seal": json_seal(content)}, indent=1) + "\n"
    for name in (NAME, BACKUP):
        write_text(folder / name, text)


def read_header(folder: Path, name: str = NAME) -> dict[str, Any]:
    """The header, or an error where one letter of it was changed."""
    path = folder / name
    if not path.is_file():
        lost = (folder / "cells").is_dir() or (folder / "compact").is_dir()
        step = f"`kshot records check {folder} --repair` brings it back" if lost else "Run `kshot run` first"
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


def restore_header(folder: Path) -> bool:
    """Write a lost or damaged header again from its backup; False where the backup is lost too."""
    try:
        content = read_header(folder, BACKUP)
    except StudyError:
        return False
    write_header(folder, content)
    return True


def stored_study(folder: Path) -> Study:
    """The study in the header."""
    header = read_header(folder)
    try:
        return study_from_json(json.dumps(header["study"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder / NAME, f"it holds no study: {type(error).__name__} {error}") from error


def addable(study: Study, found: Study) -> list[str]:
    """Methods that only the folder's study has and `--method` can name."""
    if (study.name, study.dtype) != (found.name, found.dtype):
        return []
    own = study.methods()
    return [name for name, spec in found.methods().items() if name not in own and spec == MethodSpec(name, name)]


def contradiction(study: Study, found: Study) -> str | None:
    """Why records of the study `found` do not belong to `study`; None where they do."""
    if study.hash == found.hash or study.extends(found):
        return None
    return (
        f"holds records of study '{found.name}' with hash {found.hash}, but this is '{study.name}' with hash "
        f"{study.hash}, which {_shortfall(study, found)}; cells and methods may only be added."
    )


def _shortfall(study: Study, found: Study) -> str:
    if study.name != found.name:
        return "is another one"
    if study.dtype != found.dtype:
        return f"computes in {study.dtype} and not in {found.dtype}"
    if study.supports != found.supports:
        return "uses other shots (--supports)"
    if study.min_residue != found.min_residue:
        return f"has min_residue {study.min_residue} and not {found.min_residue}"
    if study.pool_cap != found.pool_cap:
        return f"has pool_cap {study.pool_cap} and not {found.pool_cap}"
    own, theirs, cells = study.methods(), found.methods(), study.cells()
    gone = [name for name in theirs if name not in own]
    changed = [name for name in theirs if name in own and own[name] != theirs[name]]
    lost = [cell for cell in found.cells() if cell not in cells]
    thinner = [
        cell
        for cell, specs in found.cells().items()
        if any(spec.name not in (*gone, *changed) and spec not in cells.get(cell, specs) for spec in specs)
    ]
    parts = []
    if gone:
        parts.append(f"lacks the method{_s(gone)} {', '.join(gone)}")
    if changed:
        was = ", ".join(f"{name} (was {theirs[name]}, is {own[name]})" for name in changed)
        parts.append(f"changes the method{_s(changed)} {was}")
    if lost:
        parts.append(f"lacks {len(lost):,} cell{_s(lost)}, such as {_shown(lost[0])}")
    if thinner:
        parts.append(f"has fewer methods in {len(thinner):,} cell{_s(thinner)}, such as {_shown(thinner[0])}")
    return " and ".join(parts)


def _s(found: list) -> str:
    return "s" if len(found) > 1 else ""


def _shown(cell: Cell) -> str:
    profile = "" if cell.profile == BALANCED else f", {cell.profile}"
    return f"{cell.dataset}/{cell.backbone}/{cell.tier} with shots {cell.shots} and seed {cell.seed}{profile}"


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path} is damaged ({why}). `kshot records check {path.parent} --repair` brings its copy back. "
        "Choose another --records folder where there is none."
    )
