"""Data of the page: cells one by one. Everything else on it is finished text."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from kshot.report.slices import JS, LOO, ORACLE
from kshot.report.table import seconds
from kshot.stats.panel import CELL, Panel
from kshot.stats.selected import ratio_curve

# The page stays small: it carries the cells of as many draws as fit, the lowest seeds first.
CELL_BYTES = 2_000_000


def embedded(panel: Panel) -> dict[str, Any]:
    """What each method answered, took and chose in a cell, and the accuracy along the ratio."""
    selected = {method: panel.selected(method) for method in panel.methods}
    columns = ("status", "reason", "selected_from")
    recorded = {m: list(zip(*(panel.recorded(m, name) for name in columns), strict=True)) for m in panel.methods}
    measures = {
        method: np.stack([panel.column(method, name) for name in ("value", "fit_seconds", "score_seconds", "ratio")])
        for method in panel.methods
    }
    room, cells = CELL_BYTES, []
    for cell in np.lexsort((np.arange(len(panel)), panel.seed)).tolist():
        methods = []
        for method in panel.methods:
            accuracy, fit, score, _ = measures[method][:, cell].tolist()
            words = _chosen(selected[method][cell], *recorded[method][cell])
            methods.append([_rounded(accuracy), *(seconds(s) if s == s else None for s in (fit, score)), words])
        curves = {
            "oracle": ratio_curve(selected[ORACLE][cell], "test") if ORACLE in selected else None,
            "loo": ratio_curve(selected[LOO][cell], "support") if LOO in selected else None,
        }
        carried = {
            "names": [str(panel.cells[axis][cell]) for axis in CELL],
            "methods": methods,
            "ratios": {m: _rounded(measures[m][3, cell]) for m in (ORACLE, LOO, JS) if m in measures},
            "curves": {name: [round(100 * value, 2) for value in curve] for name, curve in curves.items() if curve},
            "facts": {name: _rounded(float(panel.cells[name][cell])) for name in ("d2", "v", "share")},
        }
        room -= len(json.dumps(carried))
        if room < 0 and cells:
            break
        cells.append(carried)
    return {
        "axes": list(CELL),
        "total": len(panel),
        "methods": [_method(panel, name) for name in panel.methods],
        "cells": cells,
    }


def as_script(data: dict[str, Any]) -> str:
    """JSON that cannot end its script element, whatever names it holds."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _method(panel: Panel, name: str) -> dict[str, Any]:
    return {"key": name, "title": panel.titles[name], "reference": name not in panel.free_methods()}


def _chosen(selected: dict[str, Any], status: str | None, reason: str | None, selected_from: str | None) -> str:
    """What a method fitted in a cell and from what; the reason where it has no result."""
    if status is None:
        return "no record"
    if status != "ok":
        return f"{status}: {reason.splitlines()[0] if reason else 'no reason recorded'}"
    origin = json.loads(selected_from or "{}")
    return "; ".join(_in_words(name, value, origin) for name, value in _flat(selected)) or "nothing fitted"


def _flat(selected: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """`{"lambda": {"mean": …}}` as `lambda.mean`; curves are carried by themselves."""
    for name, value in selected.items():
        parts = {f"{name}.{part}": inner for part, inner in value.items()} if isinstance(value, dict) else {name: value}
        yield from ((part, inner) for part, inner in parts.items() if isinstance(inner, bool | int | float | str))


def _in_words(name: str, value: Any, origin: dict[str, str]) -> str:
    shown = f"{value:.4g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    return f"{name} = {shown} (from {origin.get(name) or origin.get(name.partition('.')[0]) or 'unsaid'})"


def _rounded(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None
