"""What the page carries: the records as compact columns that the browser can recompute everything from."""

import base64
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import LOO, ORACLE, failures, focus, story_first
from kshot.report.numbers import named
from kshot.report.renderings import LATEX
from kshot.report.verdict import CHOSEN, MOST_TIED, WORDS, probes
from kshot.stats.bootstrap import RESAMPLES, SEED
from kshot.stats.metrics import ACCURACY, Metric
from kshot.stats.panel import CELL, FACTS, Panel
from kshot.stats.selected import FLAT_RATIOS, ratio_curve
from kshot.types import Sketch

# The page stays below 5 MB: curves are kept for as many seeds as fit, the lowest first.
CURVE_BYTES = 1_200_000
MOST_CLUSTERS = 400


def embedded(panel: Panel, context: Context) -> dict[str, Any]:
    """Everything the page shows that is not a finished table."""
    focused, plain = focus(panel), {ACCURACY.key: panel}
    return {
        "study": panel.study,
        "hash": panel.study_hash,
        "version": panel.version,
        "dtype": panel.dtype,
        "simulated": panel.simulated,
        "failed": failures(panel),
        "focus": {
            "tier": focused.tier,
            "backbone": focused.backbone,
            "profile": focused.profile,
            "datasets": sorted(set(panel.dataset[panel.profile == focused.profile].tolist())),
        },
        "verdict": {"words": WORDS, "chosen": CHOSEN, "probes": probes(panel, context.own), "most_tied": MOST_TIED},
        "axes": {name: _dictionary(getattr(panel, name)) for name in CELL},
        "facts": {name: _floats(getattr(panel, name)) for name in (*FACTS, "n_test")},
        "methods": [_method(panel, context, index) for index in range(len(panel.methods))],
        "metrics": {key: _metric(focused.metric) for key, focused in (context.measured or plain).items()},
        "order": story_first(panel),
        "curves": _curves(panel),
        "ratios": FLAT_RATIOS,
        "sketches": [_sketch(sketch) for sketch in context.sketches],
        "sketches_absent": context.sketches_absent,
        "headroom": [[*stratum, round(value, 4)] for stratum, value in sorted(context.headroom.items())],
        "latex": LATEX,
        "resamples": RESAMPLES,
        "t": _critical_values(),
        "generator": _generator_state(),
    }


def as_script(data: dict[str, Any]) -> str:
    """JSON that cannot end its script element, whatever names it holds."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _metric(metric: Metric) -> dict[str, Any]:
    return {"title": named(metric), "less": metric.less_is_better, "digits": metric.digits, "scale": metric.scale}


def _method(panel: Panel, context: Context, index: int) -> dict[str, Any]:
    name = panel.methods[index]
    others = {key: found for key, found in context.measured.items() if key != ACCURACY.key}
    return {
        "key": name,
        "title": panel.titles[name],
        "reference": name not in panel.free_methods(),
        "transductive": name in panel.transductive,
        "accuracy": _floats(panel.value[:, index]),
        "measured": {key: _floats(found.value[:, index]) for key, found in others.items()},
        "fit_seconds": _floats(panel.fit_seconds[:, index]),
        "score_seconds": _floats(panel.score_seconds[:, index]),
        **_fitted(panel, index),
    }


def _fitted(panel: Panel, index: int) -> dict[str, Any]:
    """Fitted numbers as columns, the few that are words as lists, and the evidence each was chosen from."""
    rows = panel.row[:, index]
    selected, origin, status, reason = (
        _taken(panel, name, rows) for name in ("selected", "selected_from", "status", "reason")
    )
    numbers: dict[str, Any] = {}
    words: dict[str, list] = {}
    came_from: dict[str, str] = {}
    for cell, text in enumerate(selected):
        for name, value in _flat(json.loads(text) if text else {}):
            if isinstance(value, bool | str):
                words.setdefault(name, [None] * len(rows))[cell] = str(value)
            else:
                numbers.setdefault(name, np.full(len(rows), np.nan))[cell] = value
    for text in dict.fromkeys(origin):
        came_from |= json.loads(text) if text else {}
    unusual = {
        cell: [status[cell], reason[cell].splitlines()[0] if reason[cell] else ""]
        for cell in range(len(rows))
        if status[cell] not in ("ok", None)
    }
    return {
        "fitted": {name: _floats(values) for name, values in numbers.items()},
        "words": {name: _dictionary(np.array([v or "" for v in values])) for name, values in words.items()},
        "from": came_from,
        "unusual": _shared_reasons(unusual),
    }


def _taken(panel: Panel, name: str, rows: np.ndarray) -> list[Any]:
    """One column of the records at these rows; None where there is no record."""
    import pyarrow as pa

    return panel.records[name].take(pa.array(rows, mask=rows < 0)).to_pylist()


def _flat(selected: dict[str, Any]) -> list[tuple[str, Any]]:
    """`{"lambda": {"mean": …}}` as `lambda.mean`; curves are carried elsewhere."""
    values = []
    for name, value in selected.items():
        if isinstance(value, dict):
            values += [(f"{name}.{part}", inner) for part, inner in value.items()]
        else:
            values.append((name, value))
    return [(name, v) for name, v in values if isinstance(v, bool | int | float | str)]


def _shared_reasons(unusual: dict[int, list[str]]) -> dict[str, Any]:
    texts = list(dict.fromkeys(map(tuple, unusual.values())))
    return {"texts": texts, "cells": {str(cell): texts.index(tuple(text)) for cell, text in unusual.items()}}


def _curves(panel: Panel) -> dict[str, Any]:
    """Accuracy over the ratios: the oracle's on the test set, leave-one-out's on the shots."""
    stored = {"oracle": _ratio_curves(panel, ORACLE, "test"), "loo": _ratio_curves(panel, LOO, "support")}
    points = max((len(curve) for curves in stored.values() for curve in curves if curve), default=0)
    per_cell = len(stored) * points * 2 * 4 / 3
    affordable = max(1, math.floor(CURVE_BYTES / max(per_cell, 1)))
    order = np.lexsort((np.arange(len(panel.seed)), panel.seed))[:affordable]
    kept = np.sort(order)
    cells = {"cells": [int(cell) for cell in kept], "total": len(panel.seed), "points": points}
    unknown = np.full(points, np.nan)
    return cells | {
        name: _fractions(np.array([c if c and len(c) == points else unknown for c in (curves[cell] for cell in kept)]))
        for name, curves in stored.items()
    }


def _ratio_curves(panel: Panel, method: str, evidence: str) -> list[list[float] | None]:
    """The method's curve in every cell."""
    if method not in panel.methods:
        return [None] * len(panel.seed)
    selected = _taken(panel, "selected", panel.row[:, panel.methods.index(method)])
    return [ratio_curve(json.loads(text), evidence) if text else None for text in selected]


def _sketch(sketch: Sketch) -> dict[str, Any]:
    return {
        "stratum": [sketch.dataset, sketch.backbone, sketch.tier],
        "names": list(sketch.names),
        "text": _plane(sketch.text),
        "image": _plane(sketch.image),
        "support": {str(shots): _plane(points) for shots, points in sketch.support.items()},
        "seed": sketch.seed,
        "classes": sketch.classes,
        "explained": round(sketch.explained, 4),
    }


def _plane(points: np.ndarray) -> list[list[float]]:
    return np.round(points, 4).tolist()


def _dictionary(values: np.ndarray) -> dict[str, Any]:
    """Distinct values and, per cell, which of them: as base64 of 16-bit integers."""
    names, codes = np.unique(values, return_inverse=True)
    return {"names": names.tolist(), "codes": _base64(codes.reshape(-1).astype("<u2"))}


def _floats(values: np.ndarray) -> Any:
    """Base64 of 32-bit floats, or one number where all are the same."""
    column = np.asarray(values, float)
    if len(column) and np.isfinite(column).all() and (column == column[0]).all():
        return float(column[0])
    return _base64(column.astype("<f4"))


def _fractions(values: np.ndarray) -> str:
    """Base64 of 16-bit integers in hundredths of a per cent; 65535 where unknown."""
    whole = np.where(np.isfinite(values), np.round(np.nan_to_num(values) * 1e4), 65535)
    return _base64(whole.astype("<u2"))


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")


def _critical_values() -> Sequence[float]:
    """Student-t quantiles for 1, 2, … degrees of freedom, so that the browser needs no inverse."""
    from scipy.stats import t

    return [round(float(value), 6) for value in t.ppf(0.975, np.arange(1, MOST_CLUSTERS))]


def _generator_state() -> dict[str, str]:
    """Where the report's draws begin, so that the browser draws the same clusters; too long for a JavaScript number."""
    state: Any = np.random.default_rng(SEED).bit_generator.state
    return {name: str(state["state"][name]) for name in ("state", "inc")}
