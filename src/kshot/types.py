"""Values shared by all rooms. No logic lives here."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray
Evidence: TypeAlias = Literal["text", "support", "pool", "validation", "test"]
Status: TypeAlias = Literal["ok", "undefined", "failed"]

# Evidence a deployed system would have; anything beyond it makes a method a reference point.
FREE_EVIDENCE: frozenset[Evidence] = frozenset({"text", "support"})


class Labelled(NamedTuple):
    """Rows with their labels: features (N, d) and integers (N,)."""

    X: Array
    y: Array


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a study's grid."""

    dataset: str
    backbone: str
    tier: str
    shots: int
    seed: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A fitted quantity and the evidence it was chosen from."""

    value: Any
    from_: Evidence | Literal["fixed"]


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """What a method is called, what it may look at and how many shots it needs."""

    key: str
    title: str
    sees: frozenset[Evidence]
    min_shots: int
    paper: str = ""
    linear: bool = True
    closed_form: bool = True
    views: bool = False
    rotation_free: bool = True

    @property
    def reference_point(self) -> bool:
        return not self.sees <= FREE_EVIDENCE


@dataclass(frozen=True, slots=True)
class Record:
    """One method on one cell, as it is stored."""

    cell: Cell
    method: str
    title: str
    sees: tuple[str, ...]
    status: Status
    reason: str = ""
    accuracy: float | None = None
    n_test: int = 0
    n_correct: int | None = None
    hits: bytes = b""
    selected: dict[str, Any] = field(default_factory=dict)
    selected_from: dict[str, str] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
