"""Every claim beside the re-run's own number, with one of four verdicts: as values, CSV and tables."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kshot.paper.arms import Arms
from kshot.paper.claims import Claim
from kshot.paper.evaluate import Evaluator
from kshot.paper.rules import Rules
from kshot.report.table import Number, Table, count, csv_text
from kshot.stats.bootstrap import Estimate

AGREES, DIFFERS, NOT_COMPUTED, NOT_REPRODUCIBLE = ("agrees", "differs", "not computed", "not reproducible as printed")
VERDICTS = (AGREES, DIFFERS, NOT_REPRODUCIBLE, NOT_COMPUTED)
# "About" a figure: within a tenth of it.
ABOUT = 0.1
COLUMNS = (
    "id", "place", "arm", "unit", "published", "published low", "published high", "relation", "ours", "ours low",
    "ours high", "cells", "datasets", "difference", "verdict", "why", "quantity",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One claim and our number; `why` explains a verdict that is neither agreement nor difference."""

    claim: Claim
    ours: Estimate
    verdict: str
    why: str = ""

    @property
    def computed(self) -> bool:
        return self.ours.mean == self.ours.mean


def compare_claims(claims: Sequence[Claim], rules: Rules, arms: Arms) -> list[Comparison]:
    """Judge these claims, in their order."""
    evaluator = Evaluator(claims, rules, arms)
    return [_judge(claim, evaluator.answer(claim), rules) for claim in claims]


def _judge(claim: Claim, ours: Estimate, rules: Rules) -> Comparison:
    if ours.mean != ours.mean:
        rule = rules.rule(claim)
        command = rule.command or rules.commands.get(claim.arm, "kshot run paper")
        return Comparison(claim, ours, NOT_COMPUTED, rule.needs or command)
    if holds(claim, ours.mean):
        return Comparison(claim, ours, AGREES)
    contradiction = rules.contradiction(claim)
    return Comparison(claim, ours, NOT_REPRODUCIBLE if contradiction else DIFFERS, contradiction)


def holds(claim: Claim, ours: float) -> bool:
    """Whether ours is inside the printed interval, within rounding where there is none, or meets a stated relation."""
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


def verdict_sentences(lines: Sequence[Comparison], simulated: bool) -> list[str]:
    """Sentences: the number of claims computed, their verdicts, and the commands that compute the others."""
    verdicts = Counter(line.verdict for line in lines)
    sentences = [
        f"{sum(line.computed for line in lines)} of {len(lines)} published numbers have a number here: "
        + ", ".join(f"{verdicts[v]} {v}" for v in (AGREES, DIFFERS, NOT_REPRODUCIBLE))
        + f"; {verdicts[NOT_COMPUTED]} are {NOT_COMPUTED}."
    ]
    if simulated:
        sentences.append(
            "These features are SIMULATED, no pictures: agreement or difference says nothing about the paper."
        )
    missing = Counter(line.why for line in lines if line.verdict == NOT_COMPUTED)
    return sentences + [f"{count} not computed: {why}" for why, count in missing.most_common()]


def as_csv(lines: Sequence[Comparison]) -> str:
    """All comparisons with all digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        c, e = line.claim, line.ours
        published = (c.id, c.place, c.arm, c.unit, c.printed, c.low, c.high, c.relation)
        ours = (e.mean, e.low, e.high, e.n, e.G, e.mean - c.value) if line.computed else ("",) * 6
        writer.writerow(map(csv_text, (*published, *ours, line.verdict, line.why, c.quantity)))
    return out.getvalue()


def arms_table(lines: Sequence[Comparison], simulated: bool) -> Table:
    """Verdicts counted by arm."""
    arms = list(dict.fromkeys(line.claim.arm for line in lines))
    counts = [[sum(x.verdict == v and x.claim.arm == arm for x in lines) for v in VERDICTS] for arm in arms]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    rows = [(arm, *map(count, (sum(own), *own))) for arm, own in zip(arms, counts, strict=True)]
    return Table(
        key="published",
        title="Beside the published: the paper's numbers by arm",
        columns=("arm", "numbers", *VERDICTS),
        rows=(*rows, ("all", *map(count, (sum(totals), *totals)))),
        caption=" ".join(verdict_sentences(lines, simulated)[: 1 + simulated]),
        rule=len(rows),
        below_rule="total",
    )


def lines_table(lines: Sequence[Comparison], simulated: bool) -> Table:
    """One line per number: theirs, ours, the difference, the verdict."""
    rows = [
        (
            line.claim.id,
            _published(line.claim),
            _interval(line.ours),
            Number(line.ours.mean - line.claim.value, "+.3g"),
            line.verdict,
            line.why or line.claim.place,
        )
        for line in lines
    ]
    return Table(
        key="published_lines",
        title="Beside the published, number by number",
        columns=("claim", "published", "ours", "difference", "verdict", "where, or why not"),
        rows=tuple(rows),
        caption="Agrees: ours lies in the printed interval, or within rounding where none is printed. "
        + " ".join(verdict_sentences(lines, simulated)[1 : 1 + simulated]),
    )


def _interval(e: Estimate) -> Number:
    return Number(e.mean, ".4g", e.low, e.high, e.n, None if e.low is None else e.G)


def _published(claim: Claim) -> str:
    printed = claim.printed if claim.low is None else f"{claim.printed} [{claim.low:g}, {claim.high:g}]"
    return printed if claim.relation == "as printed" else f"{claim.relation} {printed}"
