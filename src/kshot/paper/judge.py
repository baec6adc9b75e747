"""Judge a run beside printed numbers, or beside another run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kshot.paper import two_runs
from kshot.paper.arms import MATRIX, Arms, absent, side_by_side
from kshot.paper.beside import GlobalTest, global_test, other_pictures
from kshot.paper.claims import Claim, Rules
from kshot.paper.comparable import assumption, other_cells, why_only_shown
from kshot.paper.evaluate import Evaluator
from kshot.paper.figures import FigureTable, figure_table
from kshot.paper.formulas import Figure
from kshot.paper.noise import Noise, draw_noise, family
from kshot.paper.signs import (
    VERSIONS,
    copies,
    facts_apart,
    facts_of,
    paper_recipes,
    printed_facts,
    recipes_apart,
    recipes_of,
)
from kshot.paper.verdict import (
    AGREES,
    CANNOT_TELL,
    DIFFERS,
    NOT_COMPARABLE,
    NOT_COMPUTED,
    SHOWN,
    Comparison,
    JudgedClaims,
)
from kshot.types import Array

# "About" a figure: within a tenth of it. HOSO's results carry this band of rounding (paper, Sec. 5.5).
ABOUT, HOSO_BAND = 0.1, 0.5
HOSO = {"hoso", "hoso+views"}
# What would matter: a point of accuracy, a tenth of an effect.
POINT, TENTH = 1.0, 0.1
# What a figure without draws may move by arithmetic: points, or a part of its size; and deviations of a split.
ROUNDING, RELATIVE, SPLIT_DEVIATIONS = 0.1, 0.02, 4.0
ON_KEPT = "One draw shows no noise: variances are those of the kept run, so only gross differences would be seen."
BORROWED = "Few figures: their variances are mixed with the kept run's."


@dataclass(frozen=True)
class Tested:
    """Figures that vary with draws, with their test."""

    places: dict[str, int]
    table: FigureTable
    noise: Noise
    test: GlobalTest


def judge(
    claims: Sequence[Claim], rules: Rules, arms: Arms, against: Arms | None = None, other: str = ""
) -> JudgedClaims:
    """Judge these claims, in their order: against what was printed, or against another run."""
    if against is not None:
        return _beside_a_run(claims, rules, arms, against, other)
    run = Evaluator(claims, rules, arms)
    figures = {claim.id: run.answer(claim) for claim in claims}
    notes: dict[str, tuple[str, str]] = {}
    evidence = []
    draws = _draws(arms)
    for claim in claims:
        figure = figures[claim.id]
        if not figure.computed:
            continue
        shown = why_only_shown(claim, figure, rules)
        unlike = shown or other_cells(claim, figure, rules, draws)
        if shown:
            notes[claim.id] = (SHOWN, shown)
        elif unlike:
            notes[claim.id] = (NOT_COMPARABLE, unlike)
        else:
            evidence.append(claim)
    matrix = arms[MATRIX]
    signs = recipes_apart(recipes, paper_recipes(), VERSIONS) if (recipes := recipes_of(matrix)) else []
    signs += [*facts_apart(facts_of(matrix), printed_facts(claims)), *copies(matrix)]
    tested, fixed = _tested(evidence, rules, arms, figures)
    lines = [_line(claim, figures[claim.id], run, rules, notes, tested, fixed) for claim in claims]
    test = None if tested is None else tested.test
    return JudgedClaims(
        lines,
        signs,
        1.0 if test is None else test.p,
        np.inf if test is None else test.limit,
        0 if tested is None else len(tested.places),
        () if test is None else test.places,
        "" if tested is None else ON_KEPT if tested.noise.kept else BORROWED if tested.noise.borrowed else "",
        simulated=arms[MATRIX].panel.origin.simulated,
    )


def _draws(arms: Arms) -> int:
    seeds = arms[MATRIX].keys["seed"]
    return len(np.unique(seeds[seeds >= 0]))


def _tested(
    evidence: Sequence[Claim], rules: Rules, arms: Arms, figures: dict[str, Figure]
) -> tuple[Tested | None, dict[str, float]]:
    """The test over the figures that vary with draws; of the others, what they may differ by."""
    if not evidence:
        return None, {}
    names = rules.paper["datasets"]
    table = figure_table(evidence, [figures[claim.id] for claim in evidence], arms)
    sizes = {name: facts[0] for (name, fact), facts in facts_of(arms[MATRIX]).items() if fact == "n_test" and facts}
    own_split = [name for name in rules.paper["self_split"] if name.lower() in sizes]
    splits = other_pictures(table, own_split, {name: sizes[name.lower()] for name in own_split})
    families = np.array([family(name, names) for name in table.ids])
    noise = draw_noise(table, names, rules.paper["seeds"])
    varies = np.isin(families, families[_moves(table, noise)])
    split_spread = np.sqrt((splits**2).sum(axis=0))
    fixed = {
        claim.id: claim.tolerance + _slack(claim) + SPLIT_DEVIATIONS * float(split_spread[n])
        for n, claim in enumerate(evidence)
        if not varies[n]
    }
    at = np.flatnonzero(varies)
    if not len(at):
        return None, fixed
    drawn = [evidence[n] for n in at.tolist()]
    table = figure_table(drawn, [figures[claim.id] for claim in drawn], arms)
    noise = draw_noise(table, names, rules.paper["seeds"])
    difference = np.array([gap(claim, figures[claim.id].value) for claim in drawn])
    test = global_test(table, difference, noise, np.array([c.tolerance for c in drawn]), splits[:, at])
    return Tested({claim.id: n for n, claim in enumerate(drawn)}, table, noise, test), fixed


def _moves(table: FigureTable, noise: Noise) -> Array:
    """Figures that other draws change: seen in the draws, or known from the kept run."""
    return np.asarray(noise.variance > 0 if noise.kept else (table.deviations != 0).any(axis=0))


def _slack(claim: Claim) -> float:
    return ROUNDING if claim.unit in ("percent", "points") else RELATIVE * abs(claim.value)


def _line(
    claim: Claim,
    figure: Figure,
    run: Evaluator,
    rules: Rules,
    notes: dict[str, tuple[str, str]],
    tested: Tested | None,
    fixed: dict[str, float],
) -> Comparison:
    if not figure.computed:
        rule = rules.rule(claim)
        partly = f"{run.partly[claim.id]} are there: " if claim.id in run.partly else ""
        command = rule.needs or rule.command or rules.commands.get(claim.arm, "kshot run paper")
        return Comparison(claim, figure, claim.value, NOT_COMPUTED, partly + command)
    apart = gap(claim, figure.value)
    if claim.id in notes:
        return Comparison(claim, figure, claim.value, *notes[claim.id], apart)
    if tested is None or claim.id not in tested.places:
        differs = abs(apart) > fixed[claim.id]
        return Comparison(
            claim, figure, claim.value, DIFFERS if differs else AGREES, "no draw changes it" if differs else "", apart
        )
    n = tested.places[claim.id]
    score, spread = float(tested.test.score[n]), float(tested.test.spread[n])
    verdict, why = AGREES, assumption(claim, rules)
    if abs(score) > tested.test.limit:
        verdict = DIFFERS
    elif tested.test.limit * spread > matters(claim, claim.value):
        verdict, why = CANNOT_TELL, f"chance alone moves it by up to {tested.test.limit * spread:.2g}"
    return Comparison(claim, figure, claim.value, verdict, why, apart, score, spread)


def _beside_a_run(claims: Sequence[Claim], rules: Rules, arms: Arms, against: Arms, other: str) -> JudgedClaims:
    """Cells decide; the claims are shown beside each other."""
    lacking = (absent(arms[MATRIX], against[MATRIX]), absent(against[MATRIX], arms[MATRIX]))
    arms, against = side_by_side(arms, against)
    ours, theirs = arms[MATRIX], against[MATRIX]
    signs = [
        *recipes_apart(recipes_of(ours), recipes_of(theirs)),
        *facts_apart(facts_of(ours), facts_of(theirs)),
        *(f"{sign} (here)" for sign in sorted({*copies(ours)} - {*copies(theirs)})),
        *(f"{sign} (there)" for sign in sorted({*copies(theirs)} - {*copies(ours)})),
    ]
    p, places, how = 1.0, (), ""
    if two_runs.same_draws(ours, theirs):
        moved, flips = two_runs.moved_heads(ours, theirs)
        signs += [str(head) for head in moved]
        how = "to the bit" if not moved and not flips else "on the same draws"
        noise = "Both runs drew the same supports, so the comparison is exact."
        if flips:
            noise += " A picture or two in a few cells: " + "; ".join(map(str, flips)) + "."
    else:
        found = two_runs.exchange(ours, theirs)
        signs += found.fixed
        p, places = found.p, found.places
        noise = "Few draws of few datasets: no p could be small." if found.coarse else ""
    runs = [Evaluator(claims, rules, each) for each in (arms, against)]
    lines = []
    for claim in claims:
        mine, its = (run.answer(claim) for run in runs)
        if not (mine.computed and its.computed):
            partly = [f"{run.partly[claim.id]} are there: " for run in runs if claim.id in run.partly]
            rule = rules.rule(claim)
            command = rule.needs or rule.command or rules.commands.get(claim.arm, "kshot run paper")
            lines.append(Comparison(claim, mine, its.value, NOT_COMPUTED, "".join(partly[:1]) + command))
        else:
            why = "the same in both runs" if _equal(mine.value, its.value) else "cells decide between two runs"
            verdict = AGREES if _equal(mine.value, its.value) else SHOWN
            lines.append(Comparison(claim, mine, its.value, verdict, why, mine.value - its.value))
    return JudgedClaims(
        lines, signs, p, places=places, noise=noise, how=how, other=other or "the other run",
        simulated=ours.panel.origin.simulated, lacking=lacking,
    )  # fmt: skip


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * max(1.0, abs(b))


def gap(claim: Claim, ours: float) -> float:
    """How far ours is from what the claim admits."""
    value = claim.value
    if claim.relation.startswith("abs"):
        return max(0.0, abs(ours) - value)
    if claim.relation in ("<", "<="):
        return max(0.0, ours - value)
    if claim.relation in (">", ">="):
        return min(0.0, ours - value)
    band = ABOUT * abs(value) if claim.relation == "~" else 0.0
    methods = claim.conditions["method"].values if "method" in claim.conditions else ()
    if claim.unit in ("points", "percent") and HOSO & set(methods):
        band = max(band, HOSO_BAND)
    return float(np.sign(ours - value) * max(0.0, abs(ours - value) - band))


def matters(claim: Claim, theirs: float) -> float:
    """The smallest difference that a reader would care about."""
    if claim.unit == "percent":
        return POINT
    if claim.unit in ("points", "count"):
        return max(POINT, TENTH * abs(theirs))
    return TENTH if claim.unit == "correlation" else TENTH * abs(theirs)
