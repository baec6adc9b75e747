"""A record: one method on one cell, as a row of a table."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from platform import machine, system
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kshot.bench.study import Cell
from kshot.stats.answers import Answers, rounded
from kshot.types import CELL as CELL

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
KEY = (*CELL, "method")
SECONDS = ("fit_seconds", "score_seconds")
ANSWERS = ("answers_truth", "answers_predicted", "answers_true", "answers_top", "answers_squares")
# Columns of a row that do not belong to its result.
CIRCUMSTANCES = ("key", "recipe", "dtype", "features", "made_by")
# Equal in all records of a cell.
FACTS = ("lambda_js", "d2", "v", "share", "n_classes", "n_test", "simulated", "protocol", "dtype")


@dataclass(frozen=True, slots=True)
class Record:
    """What came of one method in one cell; `quantities` are those of a probe."""

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
    quantities: dict[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    answers: Answers | None = None


@dataclass(frozen=True, slots=True)
class CellFacts:
    """Sizes, geometry and provenance of a cell, repeated in each of its records; None where unknown, never NaN."""

    simulated: bool
    dtype: str
    n_classes: int
    protocol: str
    lambda_js: float | None = None
    d2: float | None = None
    v: float | None = None
    share: float | None = None


@cache
def made_by() -> str:
    """What computes here, as JSON: versions of kshot and numpy, system and processor."""
    about = {"kshot": version("kshot"), "numpy": version("numpy"), "machine": f"{system()} {machine()}"}
    return json.dumps(about, sort_keys=True)


@cache
def schema() -> "pa.Schema":
    """The columns of every file of records."""
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int32()
    columns = {
        "key": text,
        **dict.fromkeys(("dataset", "backbone", "tier"), text),
        **dict.fromkeys(("shots", "seed"), whole),
        "profile": text,
        "recipe": text,
        "sees": pa.list_(text),
        **dict.fromkeys(("status", "reason", "traceback"), text),
        **dict.fromkeys(("n_test", "n_correct"), whole),
        "accuracy": number,
        "hits": pa.binary(),
        "answered": pa.bool_(),
        **dict.fromkeys(ANSWERS[:2], pa.list_(pa.uint16())),
        **dict.fromkeys(ANSWERS[2:], pa.list_(pa.float16())),
        "selected": text,
        "selected_from": text,
        "quantities": pa.map_(text, number),
        **dict.fromkeys(("lambda_js", "d2", "v", "share"), number),
        "n_classes": whole,
        "simulated": pa.bool_(),
        **dict.fromkeys(("protocol", "dtype", "features", "made_by"), text),
        **dict.fromkeys(SECONDS, number),
    }
    return pa.schema(columns, metadata={"kshot": str(FORMAT)})


def row(
    key: str, cell: Cell, recipe: Mapping[str, Any], features: Mapping[str, str], facts: CellFacts, record: Record
) -> dict[str, Any]:
    """All columns by name; dicts as JSON."""
    content = {name: getattr(part, name) for part in (record, facts, cell) for name in part.__slots__}
    answers = content.pop("answers")
    quantities = list(content.pop("quantities").items())
    content = {name: json.dumps(v, sort_keys=True) if isinstance(v, dict) else v for name, v in content.items()}
    return {
        **content,
        "key": key,
        "sees": sorted(record.sees),
        "recipe": json.dumps(recipe, sort_keys=True, default=list),
        "features": json.dumps({part: value[:16] for part, value in features.items()}, sort_keys=True),
        "quantities": quantities or None,
        "made_by": made_by(),
        "answered": answers is not None,
        **(_answer_columns(answers) if answers is not None else {}),
    }


def _answer_columns(answers: Answers) -> dict[str, np.ndarray]:
    """Three numbers a picture, rounded; that of the predicted class is 0 where it is the true one's."""
    surprises = (answers.true_surprise, np.where(answers.hits, 0.0, answers.top_surprise), answers.squares)
    labels = (values.astype(np.uint16) for values in (answers.truth, answers.predicted))
    return dict(zip(ANSWERS, (*labels, *map(rounded, surprises)), strict=True))


def answers_of_row(columns: Mapping[str, np.ndarray], n_classes: int, unseen: np.ndarray | None) -> Answers:
    """The inverse, within `kshot.stats.answers.RELATIVE_ERROR` of every number."""
    truth, predicted = (np.asarray(columns[name], np.int64) for name in ANSWERS[:2])
    true, top, squares = (np.asarray(columns[name], np.float64) for name in ANSWERS[2:])
    return Answers(truth, predicted, true, np.where(predicted == truth, true, top), squares, n_classes, unseen)


def cells_of(table: "pa.Table") -> list[Cell]:
    """The cell of every row."""
    return [Cell(*values) for values in zip(*(table[name].to_pylist() for name in CELL), strict=True)]


def table_of(rows: Sequence[Mapping[str, Any]]) -> "pa.Table":
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), schema=schema())


def take(table: "pa.Table", rows: Iterable[int]) -> "pa.Table":
    """These rows, by number. `pa.array` would import pandas where that is installed, which takes longer than that."""
    import pyarrow as pa

    numbers = np.fromiter(rows, np.int64)
    return table.take(pa.Int64Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)]))
