"""The five things the paper asks of every new blend, as a table and in words."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kshot.report.notes import INTERVALS, counted, lost_cells, missing, provenance, sentences
from kshot.report.slices import CLAP, LPP, ORACLE, ZERO_SHOT
from kshot.report.table import Table, count, interval, number
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.panel import Panel

Difference = tuple[Estimate, Estimate]


@dataclass(frozen=True)
class OwnKnob:
    """The newcomer's knob and its test-set oracle in per cent, by (dataset, backbone, tier, shots, seed)."""

    name: str
    oracle: Mapping[tuple, float]


def judgement_table(panel: Panel, method: str, knob: OwnKnob | None) -> Table:
    """Differences in points, newcomer minus the other, over all K and from K = 4."""
    rows = []
    for question, words, difference in _questions(panel, method, knob):
        overall, late = difference or (None, None)
        n = count(overall.n) if overall else number(None)
        rows.append((question, interval(overall), n, interval(late), words))
    return Table(
        key="judgement",
        title=f"{panel.titles[method]}: the five questions",
        columns=("question", "all K", "n", "K≥4", "in words"),
        rows=tuple(rows),
        caption=sentences(
            f"Newcomer minus the other, percentage points on identical shots; {counted(panel)}.",
            INTERVALS,
            f"Its own knob: {knob.name}, tuned on the test labels."
            if knob
            else "Declare a knob with knob_name, knob_grid and knob_curve (kshot.methods.knob).",
            missing(panel, (ZERO_SHOT, ORACLE, CLAP, LPP)),
            lost_cells(panel, method),
            provenance(panel),
        ),
    )


def judgement(panel: Panel, method: str, knob: OwnKnob | None) -> list[str]:
    """The same, one sentence each."""
    sentences = []
    for question, words, difference in _questions(panel, method, knob):
        figures = (
            f"{interval(difference[0])} points over all K, {interval(difference[1])} from K = 4; " if difference else ""
        )
        sentences.append(f"{question}: {figures}{words}.")
    sentences += [lost] if (lost := lost_cells(panel, method)) else []
    if method in panel.reference_points:
        sentences.append(
            f"{panel.titles[method]} looks at what a user does not have: a reference point, not a method to rank."
        )
    return sentences


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
        return "the newcomer itself", None
    return _difference(panel, panel.column(method) - panel.column(other))


def _own_oracle(panel: Panel, method: str, knob: OwnKnob | None) -> tuple[str, Difference | None]:
    if knob is None:
        return "no knob declared", None
    oracle = np.array([knob.oracle.get(cell, np.nan) for cell in panel.cell_keys()])
    return _difference(panel, panel.column(method) - oracle)


def _difference(panel: Panel, values: np.ndarray) -> tuple[str, Difference | None]:
    late = panel.shots >= 4
    both = cluster_mean(values, panel.dataset), cluster_mean(values[late], panel.dataset[late])
    if not both[0].n:
        return "no cell holds both", None
    if both[0].low is None:
        return "one dataset: no interval", both
    if not both[0].excludes_zero:
        return "not told apart", both
    return ("better" if both[0].mean > 0 else "worse"), both


def _how_chosen(panel: Panel, method: str) -> str:
    origin: dict[str, set[str]] = {}
    for text in panel.recorded(method, "selected_from"):
        for name, evidence in json.loads(text or "{}").items():
            origin.setdefault(name, set()).add(evidence)
    if not origin:
        return "nothing was fitted and written to selected_"
    return ", ".join(f"{name} from {' and '.join(sorted(where))}" for name, where in sorted(origin.items()))
