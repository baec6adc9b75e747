"""The contents of a records folder: records, their columns in a table, and the header study.json."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kshot.bench.study import Cell, Study, study_from_json
from kshot.errors import StudyError
from kshot.files import json_seal, write_text
from kshot.stats.answers import Answers
from kshot.types import CELL as CELL
from kshot.types import IMPORTED

if TYPE_CHECKING:
    import pyarrow as pa

NAME, BACKUP = "study.json", "study-copy.json"
NEEDED = ("hash", "study", "dropped", "features")
KEY = (*CELL, "method")
SECONDS = ("fit_seconds", "score_seconds")


@dataclass(frozen=True, slots=True)
class Record:
    """One method on one cell; `traceback` and `answers` are kept beside the records, not in them; `code` is a
    hash of the source files that made it, empty for methods of kshot."""

    cell: Cell
    method: str
    title: str
    sees: tuple[str, ...]
    status: Literal["ok", "undefined", "failed"]
    reason: str = ""
    traceback: str = ""
    accuracy: float | None = None
    n_test: int = 0
    n_correct: int | None = None
    hits: bytes = b""
    selected: dict[str, Any] = field(default_factory=dict)
    selected_from: dict[str, str] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    views: dict[str, Any] = field(default_factory=dict)
    answers: Answers | None = None
    code: str = ""


@dataclass(frozen=True, slots=True)
class CellFacts:
    """Sizes, geometry and provenance of a cell, repeated in each of its records; None where unknown, never NaN."""

    simulated: bool
    dtype: str
    n_classes: int
    protocol: str
    feature_hashes: dict[str, str]
    lambda_js: float | None
    d2: float | None
    v: float | None
    share: float | None


def table(study: Study, facts: CellFacts, records: Sequence[Record]) -> "pa.Table":
    """The records of one cell as a table."""
    import pyarrow as pa

    shared = {"study": study.name, "study_hash": study.hash, "version": kshot_version()}
    return pa.Table.from_pylist([shared | _row(facts, record) for record in records], schema=schema())


@cache
def kshot_version() -> str:
    """The version that every row names; cached because the lookup takes milliseconds."""
    return version("kshot")


def schema() -> "pa.Schema":
    """The columns of every table of records."""
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int32()
    columns = {
        "method": text,
        "title": text,
        "sees": pa.list_(text),
        "status": text,
        "reason": text,
        "accuracy": number,
        "n_test": whole,
        "n_correct": whole,
        "hits": pa.binary(),
        "selected": text,
        "selected_from": text,
        "views": text,
        "lambda_js": number,
        "d2": number,
        "v": number,
        "share": number,
        "n_classes": whole,
        "simulated": pa.bool_(),
        "protocol": text,
        "dtype": text,
        "version": text,
        "code": text,
        "feature_hashes": text,
        "fit_seconds": number,
        "score_seconds": number,
    }
    return pa.schema([*cell_columns(), *columns.items()])


def cell_columns() -> "list[tuple[str, pa.DataType]]":
    """The first columns of every row: the study and the cell."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int32()
    cell = {"dataset": text, "backbone": text, "tier": text, "shots": whole, "seed": whole, "profile": text}
    return [("study", text), ("study_hash", text), *cell.items()]


def cells_of(table: "pa.Table") -> list[Cell]:
    """The cell of every row."""
    return [Cell(*values) for values in zip(*(table[name].to_pylist() for name in CELL), strict=True)]


def contradictory_rows(table: "pa.Table") -> np.ndarray:
    """Numbers of the rows whose accuracy, counts and hits do not agree; imported rows have an accuracy only."""
    columns = zip(table["status"].to_pylist(), table["version"].to_pylist(), strict=True)
    scored = np.array([status == "ok" and version != IMPORTED for status, version in columns], bool)
    hits = [np.frombuffer(value or b"", np.uint8) for value in table["hits"].to_pylist()]
    counted = np.array([np.unpackbits(bits).sum() for bits in hits])
    n_test = table["n_test"].to_numpy()
    n_correct = table["n_correct"].fill_null(-1).to_numpy()
    accuracy = table["accuracy"].fill_null(-1.0).to_numpy()
    agree = (counted == n_correct) & (np.array([len(bits) for bits in hits]) == -(-n_test // 8))
    agree &= np.abs(accuracy * n_test - n_correct) < 1e-6 * np.maximum(n_test, 1)
    return np.flatnonzero(scored & ~agree)


def _row(facts: CellFacts, record: Record) -> dict[str, Any]:
    """All fields by name, dicts as JSON."""
    found = {name: getattr(part, name) for part in (record, facts, record.cell) for name in part.__slots__}
    found["sees"] = sorted(record.sees)
    return {name: json.dumps(v, sort_keys=True) if isinstance(v, dict) else v for name, v in found.items()}


def write_header(folder: Path, content: dict[str, Any]) -> None:
    """Write study.json and then its backup, so that one of the two is whole whenever power fails."""
    text = json.dumps({**content, "seal": json_seal(content)}, indent=1) + "\n"
    for name in (NAME, BACKUP):
        write_text(folder / name, text)


def read_header(folder: Path, name: str = NAME) -> dict[str, Any]:
    """Read the header; raise if it was changed after it was written."""
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


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path} is damaged ({why}). `kshot records check {path.parent} --repair` brings its copy back. "
        "Choose another --records folder where there is none."
    )
