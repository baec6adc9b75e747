"""Rules: what to compute for which claims, as `rules.toml` says it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from typing import Any

from kshot.paper.claims import Claim


@dataclass(frozen=True)
class Rule:
    """One entry; the head of `rules.toml` explains the fields."""

    claims: tuple[str, ...] = ()
    measure: tuple[str, ...] = ("accuracy",)
    figure: str = "mean"
    reduce: str = ""
    over: tuple[str, ...] = ()
    paired_with: tuple[str, ...] = ()
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

    rules: tuple[Rule, ...]
    paper: Mapping[str, Any]
    commands: Mapping[str, str]
    contradictions: Mapping[str, str]

    def rule(self, claim: Claim) -> Rule:
        return next((rule for rule in self.rules if matches(claim.id, rule.claims)), Rule())

    def contradiction(self, claim: Claim) -> str:
        """What the paper says against itself there; empty where it does not."""
        return next((why for pattern, why in self.contradictions.items() if fnmatchcase(claim.id, pattern)), "")


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@lru_cache
def paper_rules() -> Rules:
    content = tomllib.loads(files("kshot.paper").joinpath("rules.toml").read_text(encoding="utf-8"))
    return Rules(
        tuple(_rule(entry) for entry in content["rule"]),
        content["paper"],
        content["commands"],
        content["contradictions"],
    )


def _rule(entry: dict[str, Any]) -> Rule:
    measure = entry.get("measure", "accuracy")
    lists = {
        "claims": tuple(entry["claims"]),
        "measure": (measure,) if isinstance(measure, str) else tuple(measure),
        "over": tuple(entry.get("over", ())),
        "paired_with": tuple(entry.get("with", ())),
    }
    return Rule(**{key: value for key, value in entry.items() if key != "with"} | lists)
