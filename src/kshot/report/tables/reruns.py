"""The same cells under another condition: what moves in another precision, and with augmented views."""

import json
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from kshot.report.context import Context
from kshot.report.focus import INTERVALS, provenance, sentences
from kshot.report.numbers import count, interval, number
from kshot.report.table import Table, absent_table
from kshot.stats.bootstrap import cluster_mean
from kshot.stats.panel import CELL, Panel
from kshot.types import Array

SHOT_SLICES = {"all K": (1, 10**9), "K=1": (1, 1), "K=2": (2, 2), "K≥4": (4, 10**9)}


def precision_table(panel: Panel, context: Context) -> Table:
    """What moves when the same cells are computed in another precision."""
    key, title = "precision", "Precision arm: what moves (percentage points)"
    other = context.other_precision
    columns = ("method", "cells", "identical", "mean |move|", "largest move", "mean move")
    if other is None:
        why = (
            f'these records are {panel.dtype} only. Run the same grid with another dtype = "…" and give its folder '
            "with --precision."
        )
        return absent_table(key, title, why)
    shared = _shared(panel, other)
    rows = []
    for method, move in _moves(other, panel, panel.methods):
        known = move[np.isfinite(move)]
        if len(known):
            moved = np.abs(known)
            figures = (number(float(moved.mean()), 3), number(float(moved.max()), 2))
            identical = count(np.count_nonzero(moved == 0))
            change = interval(cluster_mean(move, shared.dataset))
            rows.append((panel.titles[method], count(len(known)), identical, *figures, change))
    return Table(
        key=key,
        title=title,
        columns=columns,
        rows=tuple(rows),
        caption=sentences(
            f"{other.dtype} minus {panel.dtype}, n = {len(shared.shots)} shared cells, G = "
            f"{len(np.unique(shared.dataset))} datasets; Student-t intervals, cluster bootstrap. Other study: "
            f"{other.study}, hash {other.study_hash}.",
            provenance(panel),
        ),
    )


def augmentation_table(panel: Panel, context: Context) -> Table:
    """What augmented views change, paired with the study that has none: overall, and where one shot is all there is."""
    key, title = "augmentation", "Augmentation arm: with views minus without (percentage points)"
    columns = ("method", "views", *SHOT_SLICES, "n")
    used, base = _views_of(panel), context.without_views
    if not used or base is None:
        why = (
            "give the folder of the same cells without views with --base."
            if used
            else "the methods of these records were given no augmented views."
        )
        return absent_table(key, title, why)
    shared = _shared(base, panel)
    rows = []
    for method, move in _moves(panel, base, used):
        slices = [(shared.shots >= least) & (shared.shots <= most) for least, most in SHOT_SLICES.values()]
        changes = (interval(cluster_mean(move[keep], shared.dataset[keep])) for keep in slices)
        rows.append((panel.titles[method], used[method], *changes, count(np.count_nonzero(np.isfinite(move)))))
    return Table(
        key=key,
        title=title,
        columns=columns,
        rows=tuple(rows),
        caption=sentences(
            f"The same shots and test pictures in study {base.study}, hash {base.study_hash}.",
            INTERVALS,
            provenance(panel),
        ),
    )


def _views_of(panel: Panel) -> dict[str, str]:
    """The methods that were given views, and which; records of older versions do not speak of them."""
    if "views" not in panel.records.column_names:
        return {}
    found = {}
    for method, text in zip(panel.records["method"].to_pylist(), panel.records["views"].to_pylist(), strict=True):
        if views := json.loads(text or "{}"):
            found[method] = f"{views['recipe']} × {views['count']}"
    return found


def _shared(panel: Panel, other: Panel) -> Panel:
    """The cells of the first panel that the other has too."""
    there = set(_cells(other))
    return panel.where(np.array([cell in there for cell in _cells(panel)], bool))


def _moves(
    panel: Panel, base: Panel, methods: "dict[str, str] | tuple[str, ...]"
) -> Iterator[tuple[str, Float[Array, " n"]]]:
    """For each method that both have, panel minus base over the cells that both have, in the order of the base."""
    row = {cell: index for index, cell in enumerate(_cells(panel))}
    shared = _shared(base, panel)
    position = [row[cell] for cell in _cells(shared)]
    for method in methods:
        if method in panel.methods and method in base.methods:
            yield method, panel.column(method)[position] - shared.column(method)


def _cells(panel: Panel) -> list[tuple]:
    return list(zip(*(getattr(panel, name).tolist() for name in CELL), strict=True))
