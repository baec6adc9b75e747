"""The atlas: what every knob is worth, and where the heads stand without choosing."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Int

from kshot.report.context import Context
from kshot.report.focus import CLAP, FOLD_GDA, GAUSS_PROBE, INTERVALS, LPP, ORACLE, provenance, sentences
from kshot.report.numbers import ABSENT, count, interval, number
from kshot.report.table import Table, absent_table
from kshot.stats.atlas import SELECTED, knob_cells, saw_queries, surveys
from kshot.stats.bootstrap import cluster_mean
from kshot.stats.panel import Panel
from kshot.types import Array

NAMES = {
    "fixed": "fixed",
    "loo": "leave-one-out",
    "folds": "folds",
    "few_shot_validation": "few-shot validation",
    "validation": "validation",
    "ensemble": "ensemble",
    "test": "test labels",
}
BELOW = "transductive: saw all test pictures"
NOTHING = "these records hold no survey of a knob; `kshot run atlas` makes them."


def knobs_table(panel: Panel, context: Context) -> Table:
    """Accuracy under each selector, the knob's worth, and what free selection recovers of it."""
    key, title = "knobs", "The atlas: test accuracy (%) of every knob under each selector"
    rows = []
    order = _inductive_first(panel)
    if not order:
        return absent_table(key, title, NOTHING)
    for method in order:
        cells = knob_cells(panel, method)
        shown = (number(float(cells.accuracy[name].mean())) if name in cells.accuracy else ABSENT for name in SELECTED)
        recovered = cells.recovered
        rows.append(
            (
                panel.titles[method].removesuffix(f" ({method})"),
                *shown,
                interval(cluster_mean(cells.worth, cells.dataset)),
                ABSENT if recovered is None else interval(cluster_mean(recovered, cells.dataset)),
                count(len(cells.rows)),
            )
        )
    return Table(
        key=key,
        title=title,
        columns=("knob", *(NAMES[name] for name in SELECTED), "worth", "recovered", "n"),
        rows=tuple(rows),
        rule=_inductive(panel, order),
        below_rule=BELOW,
        caption=sentences(
            "worth: choosing by the test labels minus the best of the grid's two ends and the fixed value, which is "
            "read off the test set as well. recovered: choosing on the shots alone (folds, else leave-one-out) minus "
            "the same. n: cells in which every selector of the row exists; rows differ in them and are not to be "
            "compared.",
            INTERVALS,
            provenance(panel),
        ),
    )


def fixed_heads_table(panel: Panel, context: Context) -> Table:
    """Each head as it comes against the oracle blend, the two probes and our own, on the same cells."""
    key, title = "fixed_heads", "Heads with their knobs at the fixed values (percentage points)"
    rivals = [name for name in (ORACLE, CLAP, LPP, FOLD_GDA, GAUSS_PROBE) if name in panel.methods]
    rows = []
    heads: dict[str, str] = {}
    for method in _inductive_first(panel):
        if "fixed" in knob_cells(panel, method).accuracy:
            heads.setdefault(panel.titles[method].split(":")[0], method)
    if not heads:
        return absent_table(key, title, NOTHING)
    # A head that was surveyed on fewer cells would leave the others with only these.
    asked = {head: len(knob_cells(panel, method, ["fixed"]).rows) for head, method in heads.items()}
    narrow = [head for head, cells in asked.items() if cells < max(asked.values())]
    heads = {head: method for head, method in heads.items() if head not in narrow}
    shared = _shared_cells(panel, heads.values(), rivals)
    for head, method in heads.items():
        cells = knob_cells(panel, method, ["fixed"])
        fixed = cells.accuracy["fixed"][np.isin(cells.rows, shared)]
        against = [
            interval(cluster_mean(fixed - panel.column(rival)[shared], panel.dataset[shared])) for rival in rivals
        ]
        rows.append((head, number(float(fixed.mean()) if len(shared) else None), *against, count(len(shared))))
    rule = _inductive(panel, heads.values())
    rows[:rule] = sorted(rows[:rule], key=lambda row: -float(row[1]))
    return Table(
        key=key,
        title=title,
        columns=("head", "accuracy", *(f"minus {panel.titles[rival]}" for rival in rivals), "n"),
        rows=tuple(rows),
        rule=rule,
        below_rule=BELOW,
        caption=sentences(
            "Nothing is chosen.",
            f"Surveyed on fewer cells, and so not here: {', '.join(narrow)}." if narrow else "",
            INTERVALS,
            provenance(panel),
        ),
    )


def _shared_cells(panel: Panel, surveyed: Iterable[str], rivals: Iterable[str]) -> Int[Array, " n"]:
    """The cells in which all these heads were surveyed and all rivals exist."""
    cells = np.arange(len(panel.shots))
    for rival in rivals:
        cells = cells[np.isfinite(panel.column(rival)[cells])]
    for method in surveyed:
        cells = np.intersect1d(cells, knob_cells(panel, method, ["fixed"]).rows)
    return cells


def _inductive_first(panel: Panel) -> list[str]:
    return sorted(surveys(panel), key=lambda method: saw_queries(panel, method))


def _inductive(panel: Panel, methods: Iterable[str]) -> int:
    return sum(not saw_queries(panel, method) for method in methods)
