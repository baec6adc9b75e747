"""Claims: every number of the paper that a re-run could check, with its cells; and the rules that compute them.

`claims.csv` keeps the printed digits; its column `restrict` is a list of `key=value`, `key>=value` or `key in {a,b}`
joined by `; `. The head of `rules.toml` explains its fields.
"""

import csv
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

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
    """One published number; `tolerance` is half of the last printed place, `cells` how many it says it is a mean of."""

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
    cells: int | None = None

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

    @property
    def relation(self) -> str:
        return self.conditions["relation"].values[0] if "relation" in self.conditions else "as printed"


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
            cells=int(row["n"]) if row.get("n") else None,
        )
    except (KeyError, ValueError, TypeError) as error:
        raise StudyError(f"{where} is no claim ({type(error).__name__} {error}).") from error


@dataclass(frozen=True)
class Rule:
    """What to compute for the claims whose ids match one of the patterns `claims`."""

    claims: Sequence[str] = ()
    measure: Sequence[str] = ("accuracy",)
    figure: str = "mean"
    reduce: str = ""
    over: Sequence[str] = ()
    paired_with: Sequence[str] = ()
    keep: str = ""
    other: str = ""
    scale: float = 1.0
    partial: bool = False
    association: str = ""
    formula: str = ""
    command: str = ""
    needs: str = ""


@dataclass(frozen=True)
class Rules:
    """All rules, the paper's grid, the command that fills each arm, and the paper's contradictions."""

    rules: Sequence[Rule]
    paper: Mapping[str, Any]
    commands: Mapping[str, str]
    contradictions: Mapping[str, str]
    by_claim: dict[str, Rule] = field(default_factory=dict, repr=False, compare=False)

    def rule(self, claim: Claim) -> Rule:
        if claim.id not in self.by_claim:
            self.by_claim[claim.id] = next((rule for rule in self.rules if matches(claim.id, rule.claims)), Rule())
        return self.by_claim[claim.id]

    def contradiction(self, claim: Claim) -> str:
        """The paper's own contradiction about this claim; empty where there is none."""
        return next((why for pattern, why in self.contradictions.items() if fnmatchcase(claim.id, pattern)), "")


def matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@lru_cache(maxsize=128)
def matching(names: tuple[str, ...], patterns: tuple[str, ...]) -> list[str]:
    """The names that one of the patterns matches."""
    return [name for name in names if matches(name, patterns)]


@lru_cache
def paper_rules() -> Rules:
    content = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
    return Rules([Rule(**entry) for entry in content.pop("rule")], **content)
