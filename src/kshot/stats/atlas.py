"""Surveys of knobs as arrays: what every selector's choice scores on the test set, cell by cell."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from kshot.stats.panel import Panel
from kshot.types import Array

CHOOSING = ("loo", "folds", "few_shot_validation", "validation", "test")
SELECTED = ("fixed", "loo", "folds", "few_shot_validation", "validation", "ensemble", "test")
FREE = ("loo", "folds")


@dataclass(frozen=True)
class KnobCells:
    """One knob over the cells in which all its selectors exist; accuracies in per cent on the test set."""

    method: str
    dataset: Shaped[Array, " n"]
    rows: Shaped[Array, " n"]
    accuracy: dict[str, Float[Array, " n"]]
    known: Float[Array, " n"]

    @property
    def worth(self) -> Float[Array, " n"]:
        """The test oracle minus the better of the grid's ends and the fixed value; all three need no choice."""
        return self.accuracy["test"] - self.known

    @property
    def recovered(self) -> Float[Array, " n"] | None:
        """What choosing on the shots alone gains over the same; by folds where they were asked, else leave-one-out."""
        by = next((name for name in reversed(FREE) if name in self.accuracy), None)
        return None if by is None else self.accuracy[by] - self.known


def surveys(panel: Panel) -> list[str]:
    """The methods of the panel that are surveys of a knob."""
    return [method for method in panel.methods if _found(panel, method)]


def saw_queries(panel: Panel, method: str) -> bool:
    """Whether the head that was surveyed is transductive."""
    rows = panel.row[:, panel.methods.index(method)]
    return "queries" in panel.records["sees"][int(rows[rows >= 0][0])].as_py()


def knob_cells(panel: Panel, method: str, names: Sequence[str] = SELECTED) -> KnobCells:
    """Selectors that were asked in some cells only restrict all columns to these: side by side, same cells."""
    found = _found(panel, method)
    names = [name for name in names if any(name in survey for _, survey in found)]
    complete = [(cell, survey) for cell, survey in found if all(name in survey for name in names)]
    scores: dict[str, list[float]] = {name: [] for name in names}
    known = []
    for _, survey in complete:
        test = survey["test"]
        for name in names:
            chosen = test[int(np.argmax(survey[name]))] if name in CHOOSING else survey[name]
            scores[name].append(chosen)
        known.append(max(test[0], test[-1], survey.get("fixed", 0.0)))
    cells = np.array([cell for cell, _ in complete], int)
    accuracy = {name: 100 * np.array(values) for name, values in scores.items()}
    return KnobCells(method, panel.dataset[cells], cells, accuracy, 100 * np.array(known))


def _found(panel: Panel, method: str) -> list[tuple[int, dict]]:
    rows = panel.row[:, panel.methods.index(method)]
    cells = np.flatnonzero(rows >= 0)
    selected = panel.records["selected"].take(rows[cells]).to_pylist()
    surveyed = ((int(cell), json.loads(text)) for cell, text in zip(cells, selected, strict=True))
    return [(cell, survey) for cell, survey in surveyed if {"grid", "test", "ensemble"} <= survey.keys()]
