"""Rules of `rules.toml`: what to compute for which claims."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from kshot.paper.claims import Claim


@dataclass(frozen=True)
class Rule:
    """One entry; the head of `rules.toml` explains the fields."""

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
    found: dict[str, Rule] = field(default_factory=dict, repr=False, compare=False)

    def rule(self, claim: Claim) -> Rule:
        if claim.id not in self.found:
            self.found[claim.id] = next((rule for rule in self.rules if matches(claim.id, rule.claims)), Rule())
        return self.found[claim.id]

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
