"""Values shared by all rooms. No logic lives here."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray
Evidence: TypeAlias = Literal["text", "support", "pool", "validation", "test"]

# Evidence a deployed system would have; anything beyond it makes a method a reference point.
FREE_EVIDENCE: frozenset[Evidence] = frozenset({"text", "support"})


class Labelled(NamedTuple):
    """Rows with their labels: features (N, d) and integers (N,)."""

    X: Array
    y: Array


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
