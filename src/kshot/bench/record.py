"""What a record is."""

from dataclasses import dataclass, field
from typing import Any, Literal

from kshot.bench.study import Cell
from kshot.stats.answers import Answers

CELL = ("dataset", "backbone", "tier", "shots", "seed", "profile")
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
