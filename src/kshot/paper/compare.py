"""Every claim beside the re-run's own number, with one of four verdicts."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kshot.paper.arms import Arms
from kshot.paper.claims import Claim
from kshot.paper.evaluate import Evaluator
from kshot.paper.rules import Rules
from kshot.report.table import csv_text
from kshot.stats.bootstrap import Estimate

AGREES, DIFFERS, NOT_COMPUTED, NOT_REPRODUCIBLE = ("agrees", "differs", "not computed", "not reproducible as printed")
# "About" a figure: within a tenth of it.
ABOUT = 0.1
COLUMNS = (
    "id", "place", "arm", "unit", "published", "published low", "published high", "relation", "ours", "ours low",
    "ours high", "cells", "datasets", "difference", "verdict", "why", "quantity",
)  # fmt: skip


@dataclass(frozen=True)
class Beside:
    """One line of the comparison; `why` explains a verdict that is neither agreement nor difference."""

    claim: Claim
    ours: Estimate
    verdict: str
    why: str = ""

    @property
    def computed(self) -> bool:
        return self.ours.mean == self.ours.mean


def compare_claims(claims: Sequence[Claim], rules: Rules, arms: Arms) -> list[Beside]:
    """In the registry's order."""
    evaluator = Evaluator(claims, rules, arms)
    return [_judge(claim, evaluator.answer(claim), rules) for claim in claims]


def _judge(claim: Claim, ours: Estimate, rules: Rules) -> Beside:
    if ours.mean != ours.mean:
        rule = rules.rule(claim)
        command = rule.command or rules.commands.get(claim.arm, "kshot run paper")
        return Beside(claim, ours, NOT_COMPUTED, rule.needs or command)
    if holds(claim, ours.mean):
        return Beside(claim, ours, AGREES)
    contradiction = rules.contradiction(claim)
    return Beside(claim, ours, NOT_REPRODUCIBLE if contradiction else DIFFERS, contradiction)


def holds(claim: Claim, ours: float) -> bool:
    """Inside the printed interval, or within rounding where there is none; a stated relation is taken literally."""
    rounding = claim.tolerance * (1 + 1e-9)
    relations = {
        "<": ours < claim.value,
        "<=": ours <= claim.value + rounding,
        ">": ours > claim.value,
        ">=": ours >= claim.value - rounding,
        "abs<": abs(ours) < claim.value,
        "abs<=": abs(ours) <= claim.value + rounding,
        "~": abs(ours - claim.value) <= max(rounding, ABOUT * abs(claim.value)),
    }
    if claim.relation in relations:
        return bool(relations[claim.relation])
    if claim.low is not None and claim.high is not None:
        return claim.low - rounding <= ours <= claim.high + rounding
    return abs(ours - claim.value) <= rounding


def verdict_sentences(lines: Sequence[Beside], simulated: bool) -> list[str]:
    """How much of the registry these folders answer, and how."""
    verdicts = Counter(line.verdict for line in lines)
    answered = sum(line.computed for line in lines)
    sentences = [
        f"{answered} of {len(lines)} published numbers have a number here: "
        + ", ".join(f"{verdicts[v]} {v}" for v in (AGREES, DIFFERS, NOT_REPRODUCIBLE))
        + f"; {verdicts[NOT_COMPUTED]} are {NOT_COMPUTED}."
    ]
    if simulated:
        sentences.append(
            "These features are SIMULATED, no pictures: agreement or difference says nothing about the paper."
        )
    missing = Counter(line.why for line in lines if line.verdict == NOT_COMPUTED)
    return sentences + [f"{count} not computed: {why}" for why, count in missing.most_common()]


def as_csv(lines: Sequence[Beside]) -> str:
    """All lines with all digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        c, e = line.claim, line.ours
        own = (e.mean, e.low, e.high, e.n, e.G, e.mean - c.value) if line.computed else ("",) * 6
        mean, low, high, n, clusters, difference = own
        published = (c.id, c.place, c.arm, c.unit, c.printed, c.low, c.high, c.relation)
        row = (*published, mean, low, high, n, clusters, difference, line.verdict, line.why, c.quantity)
        writer.writerow(map(csv_text, row))
    return out.getvalue()
