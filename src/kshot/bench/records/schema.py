"""What a record is, in memory and as a row of parquet."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from kshot.answer_codes import Answers
from kshot.bench.study import Cell, Study

if TYPE_CHECKING:
    import pyarrow as pa

CELL = ("dataset", "backbone", "tier", "shots", "seed")
SECONDS = ("fit_seconds", "score_seconds")


@dataclass(frozen=True, slots=True)
class Record:
    """One method on one cell; `traceback` and `answers` are kept beside the records, not in them."""

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
    """The records of one cell as a table with the schema of every records file."""
    import pyarrow as pa

    shared = {"study": study.name, "study_hash": study.hash, "version": version("kshot")}
    return pa.Table.from_pylist([shared | _row(facts, record) for record in records], schema=schema())


def schema() -> "pa.Schema":
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int32()
    return pa.schema(
        [
            ("study", text),
            ("study_hash", text),
            ("dataset", text),
            ("backbone", text),
            ("tier", text),
            ("shots", whole),
            ("seed", whole),
            ("method", text),
            ("title", text),
            ("sees", pa.list_(text)),
            ("status", text),
            ("reason", text),
            ("accuracy", number),
            ("n_test", whole),
            ("n_correct", whole),
            ("hits", pa.binary()),
            ("selected", text),
            ("selected_from", text),
            ("views", text),
            ("lambda_js", number),
            ("d2", number),
            ("v", number),
            ("share", number),
            ("n_classes", whole),
            ("simulated", pa.bool_()),
            ("protocol", text),
            ("dtype", text),
            ("version", text),
            ("feature_hashes", text),
            ("fit_seconds", number),
            ("score_seconds", number),
        ]
    )


def _row(facts: CellFacts, record: Record) -> dict[str, Any]:
    cell = record.cell
    return {
        "dataset": cell.dataset,
        "backbone": cell.backbone,
        "tier": cell.tier,
        "shots": cell.shots,
        "seed": cell.seed,
        "method": record.method,
        "title": record.title,
        "sees": sorted(record.sees),
        "status": record.status,
        "reason": record.reason,
        "accuracy": record.accuracy,
        "n_test": record.n_test,
        "n_correct": record.n_correct,
        "hits": record.hits,
        "selected": json.dumps(record.selected, sort_keys=True),
        "selected_from": json.dumps(record.selected_from, sort_keys=True),
        "views": json.dumps(record.views, sort_keys=True),
        "lambda_js": facts.lambda_js,
        "d2": facts.d2,
        "v": facts.v,
        "share": facts.share,
        "n_classes": facts.n_classes,
        "simulated": facts.simulated,
        "protocol": facts.protocol,
        "dtype": facts.dtype,
        "feature_hashes": json.dumps(facts.feature_hashes, sort_keys=True),
        "fit_seconds": record.fit_seconds,
        "score_seconds": record.score_seconds,
    }
