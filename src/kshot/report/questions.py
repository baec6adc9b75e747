"""The paper's five questions about a new blend, as a table and in words."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kshot.report.notes import cells_in_words, intervals, lost_cells, missing, provenance, sentences, where
from kshot.report.slices import CLAP, LPP, ORACLE, ZERO_SHOT
from kshot.report.table import Table, count, in_words, interval, number
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.leaderboard import paired
from kshot.stats.panel import Panel

Difference = tuple[Estimate, Estimate]


@dataclass(frozen=True)
class OwnKnob:
    """The new method's knob and its test-set oracle in per cent, by (dataset, backbone, tier, shots, seed)."""

    name: str
    oracle: Mapping[tuple, float]


def five_questions(panel: Panel, method: str, knob: OwnKnob | None) -> tuple[Table, list[str]]:
    """A table of the new method minus the others, over all K and from K = 4, and the same in a sentence each."""
    rows, answers = [], []
    for question, words, difference in _questions(panel, method, knob):
        overall, late = difference or (None, None)
        rows.append((question, interval(overall), count(overall.n) if overall else number(None), interval(late), words))
        figures = f"{in_words(overall)} points over all K, {in_words(late)} from K = 4; " if overall and late else ""
        answers.append(f"{question}: {figures}{words}.")
    lost = lost_cells(panel, method)
    table = Table(
        key="judgement",
        title=f"{panel.titles[method]}: the five questions",
        columns=("question", "all K", "n", "K≥4", "in words"),
        rows=tuple(rows),
        caption=sentences(
            f"New method minus the other, percentage points on identical shots; {cells_in_words(panel)}.",
            intervals(panel),
            f"Its own knob: {knob.name}, tuned on the test labels."
            if knob
            else "Declare a knob with knob_name, knob_grid and knob_curve (kshot.methods.knob).",
            missing(panel, (ZERO_SHOT, ORACLE, CLAP, LPP)),
            lost,
            provenance(panel),
        ),
    )
    if lost:
        answers.append(lost)
    if method in panel.reference_points:
        answers.append(
            f"{panel.titles[method]} looks at what a user does not have: a reference point, not a method to rank."
        )
    return table, answers


def _questions(panel: Panel, method: str, knob: OwnKnob | None) -> list[tuple[str, str, Difference | None]]:
    others = (
        ("1 against zero-shot", ZERO_SHOT),
        ("3 against the oracle ratio", ORACLE),
        ("4 against CLAP", CLAP),
        ("4 against LP++", LPP),
    )
    answers = [(question, *_compared(panel, method, other)) for question, other in others]
    answers.insert(1, ("2 against its knob's oracle", *_own_oracle(panel, method, knob)))
    return [*answers, ("5 how its knob was chosen", _how_chosen(panel, method), None)]


def _compared(panel: Panel, method: str, other: str) -> tuple[str, Difference | None]:
    if other not in panel.methods:
        return f"{other} is not registered or not in this study", None
    if other == method:
        return "the new method itself", None
    parts = panel, panel.where(panel.shots >= 4)
    return _judged(*(paired(part, method, other) for part in parts))


def _own_oracle(panel: Panel, method: str, knob: OwnKnob | None) -> tuple[str, Difference | None]:
    if knob is None:
        return "no knob declared", None
    oracle = np.array([knob.oracle.get(cell, np.nan) for cell in panel.cell_keys()])
    values, late = panel.column(method) - oracle, panel.shots >= 4
    return _judged(cluster_mean(values, panel.dataset), cluster_mean(values[late], panel.dataset[late]))


def _judged(overall: Estimate, late: Estimate) -> tuple[str, Difference | None]:
    if not overall.n:
        return "no cell holds both", None
    if overall.low is None:
        return "no interval: fewer than three datasets, and no hits of three draws", (overall, late)
    here = where(overall.G) and f" {where(overall.G)}"
    if overall.beside and not overall.excludes_zero:
        return f"not told apart over {overall.G} datasets; {_outcome(overall.beside)} on these", (overall, late)
    return f"{_outcome(overall)}{here}", (overall, late)


def _outcome(difference: Estimate) -> str:
    if not difference.excludes_zero:
        return "not told apart"
    return "better" if difference.mean > 0 else "worse"


def _how_chosen(panel: Panel, method: str) -> str:
    origin: dict[str, set[str]] = {}
    for text in panel.recorded(method, "selected_from"):
        for name, evidence in json.loads(text or "{}").items():
            origin.setdefault(name, set()).add(evidence)
    if not origin:
        return "nothing was fitted and written to selected_"
    return ", ".join(f"{name} from {' and '.join(sorted(where))}" for name, where in sorted(origin.items()))
