"""The comparison as tables."""

from collections.abc import Sequence

from kshot.report.numbers import interval, number
from kshot.report.published.compare import (
    AGREES,
    DIFFERS,
    NOT_COMPUTED,
    NOT_REPRODUCIBLE,
    Beside,
    verdict_sentences,
)
from kshot.report.table import ABSENT, Table

VERDICTS = (AGREES, DIFFERS, NOT_REPRODUCIBLE, NOT_COMPUTED)
SIGNIFICANT = 4


def arms_table(lines: Sequence[Beside], simulated: bool) -> Table:
    """How many numbers of each arm agree."""
    arms = list(dict.fromkeys(line.claim.arm for line in lines))
    counted = [[sum(x.verdict == v and x.claim.arm == arm for x in lines) for v in VERDICTS] for arm in arms]
    rows = [(arm, *map(str, (sum(counts), *counts))) for arm, counts in zip(arms, counted, strict=True)]
    totals = [sum(column) for column in zip(*counted, strict=True)]
    return Table(
        key="published",
        title="Beside the published: the paper's numbers by arm",
        columns=("arm", "numbers", *VERDICTS),
        rows=(*rows, ("all", *map(str, (sum(totals), *totals)))),
        caption=" ".join(verdict_sentences(lines, simulated)[: 1 + simulated]),
        rule=len(rows),
        below_rule="total",
    )


def lines_table(lines: Sequence[Beside], simulated: bool) -> Table:
    """One line per number: theirs, ours, the difference, the verdict."""
    rows = [
        (
            line.claim.id,
            _theirs(line),
            interval(line.ours, SIGNIFICANT, sign=False).replace(" [no interval]", "")
            if line.computed
            else ABSENT,
            number(line.ours.mean - line.claim.value, SIGNIFICANT),
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


def _theirs(line: Beside) -> str:
    claim = line.claim
    printed = claim.printed if claim.low is None else f"{claim.printed} [{claim.low:g}, {claim.high:g}]"
    return printed if claim.relation == "as printed" else f"{claim.relation} {printed}"
