"""A judgement in words: one sentence first, then what is plain, the test, counts, CSV and tables."""

import csv
import io
from collections import Counter

from kshot.paper.beside import LEVEL
from kshot.paper.claims import Claim
from kshot.paper.figures import ANY
from kshot.paper.verdict import CANNOT_TELL, NOT_COMPUTED, VERDICTS, Comparison, JudgedClaims
from kshot.report.table import Number, Table, count, csv_text
from kshot.stats.bootstrap import Estimate

LARGEST, PLACES = 5, 10
# Fewer figures with noise of their own see little.
FEW = 30
COLUMNS = (
    "id", "place", "arm", "unit", "published", "published low", "published high", "relation", "ours", "ours low",
    "ours high", "cells", "datasets", "difference", "verdict", "why", "quantity", "theirs", "z", "chance",
)  # fmt: skip


def verdict_sentences(judged: JudgedClaims) -> list[str]:
    """Sentences: whether these are the same results, what is plain, the test, the verdicts counted, and what computes
    the others."""
    return [first_sentence(judged), *_simulated(judged), *_plain(judged), *_lacking(judged), *_counts(judged)]


def first_sentence(judged: JudgedClaims) -> str:
    """Whether these are the same results."""
    if not any(line.computed for line in judged.lines):
        return f"Nothing here can be put beside {judged.other} yet."
    if judged.same:
        return f"These are the same results as {judged.other}, {judged.how or 'up to the luck of the draws'}."
    return f"These are NOT the same results as {judged.other}: {_reason(judged)}."


def _simulated(judged: JudgedClaims) -> list[str]:
    words = "These features are SIMULATED, no pictures: agreement or difference says nothing about the paper."
    return [words] if judged.simulated else []


def _plain(judged: JudgedClaims) -> list[str]:
    """What needs no statistics."""
    more = len(judged.signs) - LARGEST
    told = [f"Plain: {sign}." for sign in judged.signs[:LARGEST]]
    return told + ([f"And {more} more of this."] if more > 0 else [])


def _reason(judged: JudgedClaims) -> str:
    if judged.signs:
        more = f" and {len(judged.signs) - 1} more" if len(judged.signs) > 1 else ""
        return f"{judged.signs[0]}{more}"
    fixed = judged.fixed_apart
    if fixed:
        return f"{len(fixed)} numbers that no draw changes differ, such as {fixed[0].claim.id}"
    where = f"; the largest deviation is {judged.places[0].place}" if judged.places else ""
    return f"draws explain these differences with p = {judged.p:.2g}{where}"


def _lacking(judged: JudgedClaims) -> list[str]:
    """What only one of two runs has, which is left out."""
    names = ("These records", judged.other)
    return [
        f"{name} {'lack' if name == names[0] else 'lacks'} {', '.join(lost)}: compared is what both have."
        for name, lost in zip(names, judged.lacking, strict=True)
        if lost
    ]


def _counts(judged: JudgedClaims) -> list[str]:
    verdicts = Counter(line.verdict for line in judged.lines)
    computed = sum(line.computed for line in judged.lines)
    sentences = [
        f"{computed} of {len(judged.lines)} numbers are computed: "
        + ", ".join(f"{verdicts[v]} {v}" for v in VERDICTS if v != NOT_COMPUTED)
        + f"; {verdicts[NOT_COMPUTED]} are {NOT_COMPUTED}."
    ]
    alarm = f"A fault-free run is called different once in {round(1 / LEVEL)}, by the level of the test."
    if judged.drawn:
        sentences.append(
            f"{judged.drawn} numbers vary with draws and are tested together: p = {judged.p:.2g}. Beyond |z| = "
            f"{judged.limit:.1f} one differs by itself. {alarm}"
        )
        if judged.drawn < FEW:
            sentences.append(f"So few see little: {CANNOT_TELL} is the honest answer to small differences.")
        tested = sorted((x for x in judged.lines if x.score == x.score), key=lambda x: -abs(x.score))[:LARGEST]
        sentences.append("Largest: " + ", ".join(f"{x.claim.id} (z = {x.score:+.1f})" for x in tested) + ".")
    elif judged.places:
        sentences.append(f"Draws of both runs exchanged: p = {judged.p:.2g}. {alarm}")
    if judged.noise:
        sentences.append(judged.noise)
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


def places_table(judged: JudgedClaims) -> Table:
    """Where the largest deviations lie, by dataset, encoder, tier, K and method."""
    rows = [
        (
            *(name or "all" for name in (one.place.dataset, one.place.backbone, one.place.tier, one.place.shots)),
            one.place.item.removeprefix("quantity ") if one.place.item != ANY else "all",
            Number(one.size, "+.2f"),
            Number(one.score, "+.1f"),
        )
        for one in judged.places[:PLACES]
    ]
    return Table(
        key="published_places",
        title="Where the largest deviations lie",
        columns=("dataset", "encoder", "tier", "K", "method", "points", "z"),
        rows=tuple(rows),
        caption="Places by how much of all deviations they explain; several rows are often one thing. A table of what "
        "such patterns usually mean is in docs/beside-the-published.md."
        + ("" if not judged.same else " The runs are the same: these are the largest by chance."),
    )


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
        caption=" ".join(s for s in verdict_sentences(judged) if "not computed: " not in s),
        rule=len(rows),
        below_rule="total",
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
        caption="z: the difference in units of what other draws and rounding give it; none where a number is only "
        "shown, or where no draw changes it, which then differs beyond its rounding. The printed interval is over "
        "datasets, which a re-run shares."
        + (" These features are SIMULATED, no pictures." if judged.simulated else ""),
    )


def _interval(e: Estimate) -> Number:
    return Number(e.mean, ".4g", e.low, e.high, e.n, None if e.low is None else e.G)


def _published(claim: Claim) -> str:
    printed = claim.printed if claim.low is None else f"{claim.printed} [{claim.low:g}, {claim.high:g}]"
    return printed if claim.relation == "as printed" else f"{claim.relation} {printed}"
