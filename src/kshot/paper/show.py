"""The comparison as tables."""

from collections.abc import Sequence

from kshot.paper.compare import AGREES, DIFFERS, NOT_COMPUTED, NOT_REPRODUCIBLE, Beside, verdict_sentences
from kshot.report.table import Number, Table, count

VERDICTS = (AGREES, DIFFERS, NOT_REPRODUCIBLE, NOT_COMPUTED)


def arms_table(lines: Sequence[Beside], simulated: bool) -> Table:
    """How many numbers of each arm agree."""
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


def lines_table(lines: Sequence[Beside], simulated: bool) -> Table:
    """One line per number: theirs, ours, the difference, the verdict."""
    rows = [
        (
            line.claim.id,
            _theirs(line),
            _ours(line),
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


def _ours(line: Beside) -> Number:
    e = line.ours
    return Number(e.mean, ".4g", e.low, e.high, e.n, None if e.low is None else e.G)


def _theirs(line: Beside) -> str:
    claim = line.claim
    printed = claim.printed if claim.low is None else f"{claim.printed} [{claim.low:g}, {claim.high:g}]"
    return printed if claim.relation == "as printed" else f"{claim.relation} {printed}"
