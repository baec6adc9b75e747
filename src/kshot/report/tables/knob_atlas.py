"""The atlas: what every knob is worth, and where the heads stand without choosing.

A survey is a record that holds, for every value of a knob, what each selector sees and what the test set says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from kshot.report.context import Context
from kshot.report.notes import over_datasets
from kshot.report.slices import CLAP, FOLD_GDA, GAUSS_PROBE, LPP, ORACLE
from kshot.report.table import ABSENT, Table, content, count, interval, number
from kshot.stats.bootstrap import cluster_mean
from kshot.stats.panel import Panel
from kshot.types import Array

# The selectors and their names in the table; CHOOSING take the best value of a curve, FREE need no further label.
NAMES = {
    "fixed": "fixed",
    "loo": "leave-one-out",
    "folds": "folds",
    "few_shot_validation": "few-shot validation",
    "validation": "validation",
    "ensemble": "ensemble",
    "test": "test labels",
}
CHOOSING = ("loo", "folds", "few_shot_validation", "validation", "test")
FREE = ("folds", "loo")
BELOW = "transductive: saw all test pictures"
NO_SURVEYS = "these records hold no survey of a knob; `kshot run atlas` makes them."


@dataclass(frozen=True)
class KnobCells:
    """One knob over the cells in which all its selectors exist; accuracies in per cent on the test set.

    `known` is the best of the grid's two ends and the fixed value, which need no choice.
    """

    dataset: Shaped[Array, " n"]
    rows: Int[Array, " n"]
    accuracy: dict[str, Float[Array, " n"]]
    known: Float[Array, " n"]

    @property
    def worth(self) -> Float[Array, " n"]:
        """Choosing by the test labels minus `known`."""
        return self.accuracy["test"] - self.known

    @property
    def recovered(self) -> Float[Array, " n"] | None:
        """Choosing on the shots alone minus `known`; by folds where they were asked, else leave-one-out."""
        by = next((name for name in FREE if name in self.accuracy), None)
        return None if by is None else self.accuracy[by] - self.known


def knobs(panel: Panel, context: Context) -> Table | str:
    """Accuracy under each selector, the knob's worth, and what free selection recovers of it."""
    order = surveys(panel)
    if not order:
        return NO_SURVEYS
    rows = []
    for method in order:
        cells = knob_cells(panel, method)
        shown = (number(float(cells.accuracy[name].mean())) if name in cells.accuracy else ABSENT for name in NAMES)
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
    return content(
        ("knob", *NAMES.values(), "worth", "recovered", "n"),
        rows,
        [
            "worth: choosing by the test labels minus the best of the grid's two ends and the fixed value, which is "
            "read off the test set as well. recovered: choosing on the shots alone (folds, else leave-one-out) minus "
            "the same. n: cells in which every selector of the row exists; rows differ in them and are not to be "
            "compared.",
            over_datasets(panel),
        ],
        rule=sum(not _saw_queries(panel, method) for method in order),
        below_rule=BELOW,
    )


def fixed_heads(panel: Panel, context: Context) -> Table | str:
    """Each head as it comes against the oracle blend, the two probes and our own, on the same cells."""
    rivals = [name for name in (ORACLE, CLAP, LPP, FOLD_GDA, GAUSS_PROBE) if name in panel.methods]
    surveyed: dict[str, KnobCells] = {}
    transductive = set()
    for method in surveys(panel):
        head, cells = panel.titles[method].split(":")[0], knob_cells(panel, method, ["fixed"])
        if cells.accuracy and head not in surveyed:
            surveyed[head] = cells
            if _saw_queries(panel, method):
                transductive.add(head)
    if not surveyed:
        return NO_SURVEYS
    # A head that was surveyed on fewer cells would leave the others with only these.
    most = max(len(cells.rows) for cells in surveyed.values())
    narrow = [head for head, cells in surveyed.items() if len(cells.rows) < most]
    heads = {head: cells for head, cells in surveyed.items() if head not in narrow}
    shared = np.arange(len(panel))
    for rival in rivals:
        shared = shared[np.isfinite(panel.column(rival)[shared])]
    for cells in heads.values():
        shared = np.intersect1d(shared, cells.rows)
    rows = []
    for head, cells in heads.items():
        fixed = cells.accuracy["fixed"][np.isin(cells.rows, shared)]
        against = (interval(cluster_mean(fixed - panel.column(r)[shared], panel.dataset[shared])) for r in rivals)
        rows.append((head, number(float(fixed.mean()) if len(shared) else None), *against, count(len(shared))))
    rule = sum(head not in transductive for head in heads)
    rows[:rule] = sorted(rows[:rule], key=lambda row: -float(row[1]))
    return content(
        ("head", "accuracy", *(f"minus {panel.titles[rival]}" for rival in rivals), "n"),
        rows,
        [
            "Nothing is chosen.",
            f"Surveyed on fewer cells, and so not here: {', '.join(narrow)}." if narrow else "",
            over_datasets(panel),
        ],
        rule=rule,
        below_rule=BELOW,
    )


def surveys(panel: Panel) -> list[str]:
    """The methods of the panel that are surveys of a knob; those of transductive heads come last."""
    found = [method for method in panel.methods if _found(panel, method)]
    return sorted(found, key=lambda method: _saw_queries(panel, method))


def knob_cells(panel: Panel, method: str, names: Sequence[str] = tuple(NAMES)) -> KnobCells:
    """Selectors that were asked in some cells only restrict all columns to these: side by side, same cells."""
    found = _found(panel, method)
    names = [name for name in names if any(name in survey for survey in found.values())]
    complete = {cell: survey for cell, survey in found.items() if all(name in survey for name in names)}
    scores: dict[str, list[float]] = {name: [] for name in names}
    known = []
    for survey in complete.values():
        test = survey["test"]
        for name in names:
            scores[name].append(test[int(np.argmax(survey[name]))] if name in CHOOSING else survey[name])
        known.append(max(test[0], test[-1], survey.get("fixed", 0.0)))
    cells = np.array(list(complete), int)
    accuracy = {name: 100 * np.array(values) for name, values in scores.items()}
    return KnobCells(panel.dataset[cells], cells, accuracy, 100 * np.array(known))


def _found(panel: Panel, method: str) -> dict[int, dict]:
    """The surveys of a method by their cell."""
    selected = enumerate(panel.selected(method))
    return {cell: survey for cell, survey in selected if {"grid", "test", "ensemble"} <= survey.keys()}


def _saw_queries(panel: Panel, method: str) -> bool:
    """Whether the head that was surveyed is transductive."""
    return "queries" in next(sees for sees in panel.recorded(method, "sees") if sees)
