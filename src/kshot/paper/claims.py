"""Claims: every number of the paper that a re-run could check, with its cells.

`claims.csv` keeps the printed digits; its column `restrict` is a list of `key=value`, `key>=value` or `key in {a,b}`
joined by `; `.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from kshot.errors import StudyError

_PART = re.compile(r"(\w+)(?:\s*(=|>=)\s*|\s+in\s+)(.+)")


@dataclass(frozen=True)
class Condition:
    """`key` is one of `values`, or at least `values[0]` where `at_least`."""

    values: tuple[str, ...]
    at_least: bool = False

    def admits(self, value: str | int) -> bool:
        return int(value) >= int(self.values[0]) if self.at_least else str(value) in self.values


@dataclass(frozen=True)
class Claim:
    """One published number; `tolerance` is half of the last printed place."""

    id: str
    place: str
    arm: str
    quantity: str
    unit: str
    printed: str
    low: float | None
    high: float | None
    restrict: str
    kind: str

    @cached_property
    def value(self) -> float:
        return float(self.printed)

    @cached_property
    def tolerance(self) -> float:
        digits, _, exponent = self.printed.lower().partition("e")
        return 0.5 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))

    @cached_property
    def conditions(self) -> Mapping[str, Condition]:
        return parse_conditions(self.restrict)

    def one(self, key: str) -> str | None:
        """The value of a key that has one value."""
        values = self.conditions.get(key)
        return values.values[0] if values else None

    @property
    def relation(self) -> str:
        return self.one("relation") or "as printed"


def parse_conditions(text: str) -> dict[str, Condition]:
    """Conditions by key; a part without a value, such as `float64 minus float32`, is a key without values."""
    conditions = {}
    for part in filter(None, text.split("; ")):
        match = _PART.fullmatch(part)
        if match is None:
            conditions[part] = Condition(())
            continue
        key, sign, value = match.groups()
        values = value.strip("{}").split(",") if sign is None else [value]
        conditions[key] = Condition(tuple(v.strip() for v in values), sign == ">=")
    return conditions


@lru_cache
def paper_claims() -> tuple[Claim, ...]:
    """The paper's claims, as they come with the package."""
    return read_claims(Path(__file__).with_name("claims.csv"))


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Claims of your own in the columns of `claims.csv`, for example the numbers of an earlier run."""
    if not path.is_file():
        raise StudyError(f"there is no registry at {path}. Leave --against out for the paper's.")
    with path.open(encoding="utf-8", newline="") as lines:
        return tuple(_claim(row, f"{path}, line {number}") for number, row in enumerate(csv.DictReader(lines), start=2))


def _claim(row: Mapping[str, str], where: str) -> Claim:
    try:
        float(row["value"])
        return Claim(
            **{key: row[key] for key in ("id", "place", "arm", "quantity", "unit", "restrict", "kind")},
            printed=row["value"],
            low=float(row["low"]) if row["low"] else None,
            high=float(row["high"]) if row["high"] else None,
        )
    except (KeyError, ValueError, TypeError) as error:
        raise StudyError(f"{where} is no claim ({type(error).__name__} {error}).") from error
