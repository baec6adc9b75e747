"""What a record is, and the columns it has in a table."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kshot.bench.study import Cell, Study
from kshot.stats.answers import Answers
from kshot.types import CELL as CELL
from kshot.types import IMPORTED

if TYPE_CHECKING:
    import pyarrow as pa

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
    """What a record repeats about its cell: sizes, geometry, provenance. NaN never: unknown is None."""

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

    shared = {"study": study.name, "study_hash": study.hash, "version": written_by()}
    return pa.Table.from_pylist([shared | _row(facts, record) for record in records], schema=schema())


@cache
def written_by() -> str:
    """The version that every row names; finding it takes milliseconds."""
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
    return pa.schema([*whose_columns(), *columns.items()])


def whose_columns() -> "list[tuple[str, pa.DataType]]":
    """The study and the cell, with which every row begins."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int32()
    cell = {"dataset": text, "backbone": text, "tier": text, "shots": whole, "seed": whole, "profile": text}
    return [("study", text), ("study_hash", text), *cell.items()]


def cells_of(table: "pa.Table") -> list[Cell]:
    """The cell of every row."""
    return [Cell(*values) for values in zip(*(table[name].to_pylist() for name in CELL), strict=True)]


def contradictory_rows(table: "pa.Table") -> np.ndarray:
    """Rows whose accuracy, counts and hits do not agree; imported ones have an accuracy alone."""
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
    """All fields by their names; what is a dict is kept as JSON."""
    found = {name: getattr(part, name) for part in (record, facts, record.cell) for name in part.__slots__}
    found["sees"] = sorted(record.sees)
    return {name: json.dumps(v, sort_keys=True) if isinstance(v, dict) else v for name, v in found.items()}
