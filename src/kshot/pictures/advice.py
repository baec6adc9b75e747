"""Recommend a method by the number of shots, from the records of open and real sets."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from kshot.errors import InputError
from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.types import FREE_EVIDENCE, Array

AUTO = "auto"
# Written by tools/evidence.py from the records in docs: the best head and its leads, by shots and kind of dataset.
EVIDENCE = Path(__file__).with_name("evidence.json")
# The best head is compared with CLAP.
RIVAL = "clap"


@dataclass(frozen=True, slots=True)
class Advice:
    """A registered method and the reason for it."""

    method: str
    reason: str

    def make(self) -> Classifier:
        return registry.create(self.method)


def advise(counts: Int[Array, " C"], wanted: str = AUTO) -> Advice:
    """Recommend by the median class's shots; a `wanted` method is taken if it needs text and shots only."""
    check_method(wanted)
    return Advice(wanted, "asked for") if wanted != AUTO else Advice(*_by_evidence(int(np.median(counts))))


def check_method(wanted: str) -> None:
    """Refuse a method that is unknown, or that needs more than text and shots; called before pictures are encoded."""
    info = None if wanted == AUTO else registry.create(wanted).info
    if info is not None and not info.sees <= FREE_EVIDENCE:
        raise InputError(
            f"{wanted} looks at data that you do not have ({', '.join(sorted(info.sees))}). Leave --method out."
        )


def _by_evidence(shots: int) -> tuple[str, str]:
    """The head with the best mean at this many shots or the next fewer, and the reason.

    The reason names CLAP, which is simpler, where the lead's interval over sets reaches zero, or the one for which
    nothing was chosen on the measured set.
    """
    rows = [row for row in json.loads(EVIDENCE.read_text(encoding="utf-8")) if row["kind"] == "all"]
    row = max((r for r in rows if r["shots"] <= shots), key=lambda r: r["shots"], default=rows[0])
    head, leads = row["head"], row["lead"]
    pictures = f"{row['shots']} picture{'s' if row['shots'] > 1 else ''} per class"
    reason = f"best on average over {row['datasets']} sets with {pictures}"
    if head != RIVAL and min(leads[RIVAL][1], row["left_out"][1]) <= 0:
        reason += f", but CLAP, which is simpler, may be as good (--method {RIVAL})"
    return head, reason
