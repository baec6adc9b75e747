"""A judgement in words: one sentence first, then counts, CSV and tables."""

import csv
import io
from collections import Counter

from kshot.paper.claims import Claim
from kshot.paper.picture import deviations
from kshot.paper.verdict import CLAIM_LEVEL, NOT_COMPUTED, VERDICTS, Comparison, JudgedClaims
from kshot.report.table import Number, Table, count, csv_text
from kshot.stats.bootstrap import Estimate

LARGEST = 5
COLUMNS = (
    "id", "place", "arm", "unit", "published", "published low", "published high", "relation", "ours", "ours low",
    "ours high", "cells", "datasets", "difference", "verdict", "why", "quantity", "theirs", "z", "chance",
)  # fmt: skip


def verdict_sentences(judged: JudgedClaims) -> list[str]:
    """Sentences: whether these are the same results, why not, the verdicts counted, and what computes the others."""
    return [first_sentence(judged), *_lacking(judged), *_counts(judged)]


def first_sentence(judged: JudgedClaims) -> str:
    """Whether these are the same results."""
    how = "to the bit" if judged.paired and _identical(judged) else "up to the luck of the draws"
    if not any(line.computed for line in judged.lines):
        return f"Nothing here can be put beside {judged.other} yet."
    if judged.same:
        return f"These are the same results as {judged.other}, {how}."
    return f"These are NOT the same results as {judged.other}{_differing(judged)}."


def _differing(judged: JudgedClaims) -> str:
    if not judged.differing:
        return ": no number differs by itself, but all together lie further apart than draws explain"
    worst = max(judged.differing, key=lambda line: abs(line.score) if line.score == line.score else 0.0)
    return f": numbers that differ are {len(judged.differing)} ({worst.claim.id} most)"


def _lacking(judged: JudgedClaims) -> list[str]:
    """What only one of two runs has, which is left out."""
    names = ("These records", judged.other)
    return [
        f"{name} {'lack' if name == names[0] else 'lacks'} {', '.join(lost)}: compared is what both have."
        for name, lost in zip(names, judged.lacking, strict=True)
        if lost
    ]


def _identical(judged: JudgedClaims) -> bool:
    return all(line.difference == 0 for line in judged.lines if line.computed and line.claim.kind != "cost")


def _counts(judged: JudgedClaims) -> list[str]:
    verdicts = Counter(line.verdict for line in judged.lines)
    computed = sum(line.computed for line in judged.lines)
    sentences = [
        f"{computed} of {len(judged.lines)} numbers can be compared: "
        + ", ".join(f"{verdicts[v]} {v}" for v in VERDICTS if v != NOT_COMPUTED)
        + f"; {verdicts[NOT_COMPUTED]} are {NOT_COMPUTED}."
    ]
    if judged.drawn:
        sentences.append(
            f"{judged.drawn} depend on draws. The limit is |z| = {judged.level:.1f}: by chance {judged.expected:.2f} "
            f"of them pass it, any of them in {100 * CLAIM_LEVEL:.0f} of 100 re-runs. All together: p = "
            f"{judged.together:.2g}."
        )
        largest = sorted((x for x in judged.lines if x.score == x.score), key=lambda x: -abs(x.score))[:LARGEST]
        sentences.append("Largest: " + ", ".join(f"{x.claim.id} (z = {x.score:+.1f})" for x in largest) + ".")
    if judged.simulated:
        sentences.append(
            "These features are SIMULATED, no pictures: agreement or difference says nothing about the paper."
        )
    missing = Counter(line.why for line in judged.lines if line.verdict == NOT_COMPUTED)
    return sentences + [f"{number} not computed: {why}" for why, number in missing.most_common()]


def as_csv(judged: JudgedClaims) -> str:
    """All comparisons with all digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in judged.lines:
        c, e = line.claim, line.ours
        published = (c.id, c.place, c.arm, c.unit, c.printed, c.low, c.high, c.relation)
        ours = (e.mean, e.low, e.high, e.n, e.G, e.mean - line.theirs) if line.computed else ("",) * 6
        noise = (line.theirs, line.score, line.spread) if line.score == line.score else (line.theirs, "", "")
        writer.writerow(map(csv_text, (*published, *ours, line.verdict, line.why, c.quantity, *noise)))
    return out.getvalue()


def arms_table(judged: JudgedClaims) -> Table:
    """Verdicts counted by arm."""
    lines = judged.lines
    arms = list(dict.fromkeys(line.claim.arm for line in lines))
    counts = [[sum(x.verdict == v and x.claim.arm == arm for x in lines) for v in VERDICTS] for arm in arms]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    rows = [(arm, *map(count, (sum(own), *own))) for arm, own in zip(arms, counts, strict=True)]
    return Table(
        key="published",
        title=f"Beside {'the published' if judged.other == 'the paper' else judged.other}: the paper's numbers by arm",
        columns=("arm", "numbers", *VERDICTS),
        rows=(*rows, ("all", *map(count, (sum(totals), *totals)))),
        caption=" ".join([first_sentence(judged), *(s for s in _counts(judged) if "not computed: " not in s)]),
        rule=len(rows),
        below_rule="total",
        picture=deviations(judged),
    )


def lines_table(judged: JudgedClaims, lines: list[Comparison]) -> Table:
    """One line per number: theirs, ours, the difference, z, the verdict."""
    printed = judged.other == "the paper"
    rows = [
        (
            line.claim.id,
            _published(line.claim) if printed else Number(line.theirs, ".4g"),
            _interval(line.ours),
            Number(line.ours.mean - line.theirs, "+.3g"),
            Number(line.score, "+.1f"),
            line.verdict,
            line.why or line.claim.place,
        )
        for line in lines
    ]
    return Table(
        key="published_lines",
        title="Beside the published, number by number",
        columns=("claim", "published" if printed else "theirs", "ours", "difference", "z", "verdict", "where, or why"),
        rows=tuple(rows),
        caption="z: the difference in units of what other draws and rounding give it; none where no draw changes a "
        "number, which then differs beyond its rounding. The printed interval is over datasets, which a re-run shares."
        + (" These features are SIMULATED, no pictures." if judged.simulated else ""),
    )


def _interval(e: Estimate) -> Number:
    return Number(e.mean, ".4g", e.low, e.high, e.n, None if e.low is None else e.G)


def _published(claim: Claim) -> str:
    printed = claim.printed if claim.low is None else f"{claim.printed} [{claim.low:g}, {claim.high:g}]"
    return printed if claim.relation == "as printed" else f"{claim.relation} {printed}"
