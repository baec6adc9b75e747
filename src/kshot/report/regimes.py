"""Regimes: cells told apart by how much the text knows and by how many classes there are."""

import numpy as np
from jaxtyping import Shaped

from kshot.report.notes import INTERVALS, cut_short
from kshot.report.slices import ZERO_SHOT, focus, primary
from kshot.report.table import Table, interval, metric_cells, metric_name
from kshot.stats.leaderboard import counting, leaderboard, side_by_side
from kshot.stats.panel import Panel
from kshot.types import Array

# Upper ends: zero-shot accuracy in per cent, and classes.
TEXT = {"weak, below 25 %": 25.0, "medium, 25 to 50 %": 50.0, "strong, from 50 %": np.inf}
CLASSES = {"up to 10": 11.0, "11 to 50": 51.0, "more than 50": np.inf}


def regimes(panel: Panel) -> dict[str, Shaped[Array, " n"]]:
    """The name of every cell's regime, by text and by classes; empty where zero-shot has no result."""
    return {"text": _binned(panel.column(ZERO_SHOT), TEXT), "classes": _binned(panel.n_classes, CLASSES)}


def _binned(values: Shaped[Array, " n"], bins: dict[str, float]) -> Shaped[Array, " n"]:
    names = np.array([*bins, ""])
    places = np.searchsorted(list(bins.values()), values.astype(float), side="right")
    return names[np.where(np.isfinite(values.astype(float)), places, len(bins))]


def regime_table(panel: Panel, baseline: str, most: int) -> Table:
    """Means of the best methods over the cells of each regime, and their difference to the baseline over all cells."""
    shown = primary(panel)
    counted = counting(shown.where(shown.present_at_every_shot_count()))
    order = [placing.method for placing in leaderboard(shown).ranked[:most]]
    names = regimes(counted)
    slices = {
        "all": counted,
        **{f"K={k}": counted.where(counted.shots == k) for k in np.unique(counted.shots)},
        **{f"text {name}": counted.where(names["text"] == name) for name in TEXT},
        **{f"{name} classes": counted.where(names["classes"] == name) for name in CLASSES},
    }
    held = {name: cells for name, cells in slices.items() if len(cells)}
    behind = side_by_side(counted, order, baseline)
    rows = []
    for method in order:
        means = metric_cells(panel.metric, [float(cells.column(method).mean()) for cells in held.values()])
        rows.append((panel.titles[method], *means, interval(behind[method])))
    against = f"minus {panel.titles[baseline]}"
    sizes = "; ".join(f"{name}: {len(cells)} cells" for name, cells in held.items())
    return Table(
        title=f"By regime: mean {metric_name(panel.metric)}",
        columns=("method", *held, against),
        rows=tuple(rows),
        caption=f"Tier {focus(panel).tier}, the same cells in every row ({sizes}). {cut_short(shown)} {INTERVALS}",
        key="regimes",
    )
