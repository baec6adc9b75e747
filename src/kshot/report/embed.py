"""Data of the page: the records as compact columns, from which the browser computes everything again."""

import base64
import json
import math
from typing import Any

import numpy as np

from kshot.report.context import Context
from kshot.report.notes import failures
from kshot.report.renderings import LATEX, NO_WIDER
from kshot.report.slices import LOO, ORACLE, focus, story_first
from kshot.report.table import metric_name
from kshot.report.verdict import CHOSEN, MOST_TIED, WORDS, probes
from kshot.stats.bootstrap import LEAST_DATASETS, LEVEL, RESAMPLES, SEED, critical_value, draw_counts
from kshot.stats.crossed import LEAST_DRAWS, TIE, hits_of
from kshot.stats.leaderboard import FEW_DATASETS
from kshot.stats.metrics import ACCURACY
from kshot.stats.panel import CELL, FACTS, Panel
from kshot.stats.selected import FLAT_RATIOS, ratio_curve
from kshot.types import Array, Sketch

# The page stays below 5 MB: curves are kept for as many seeds as fit, the lowest first, and draws of datasets for the
# largest numbers of them.
CURVE_BYTES = 1_200_000
DRAW_BYTES = 1_500_000
# Hits of all test pictures where they fit, else of a random part of them, but of no fewer than so many a dataset.
HIT_BYTES, LEAST_PICTURES = 1_400_000, 100
# Student's t at so many equal steps of the inverse degrees of freedom, from infinitely many to one.
T_STEPS = 256


def embedded(panel: Panel, context: Context) -> dict[str, Any]:
    """Everything the page shows that is not a finished table."""
    focused, origin = focus(panel), panel.origin
    measured = context.measured or {ACCURACY.key: panel}
    of_profile = panel.where(panel.profile == focused.profile)
    hits, packed = _hits(panel)
    return {
        "study": origin.study,
        "hash": origin.inputs,
        "version": " to ".join(origin.versions),
        "dtype": origin.dtype,
        "simulated": origin.simulated,
        "failed": failures(panel),
        "focus": {
            "tier": focused.tier,
            "backbone": focused.backbone,
            "profile": focused.profile,
            "datasets": of_profile.names("dataset"),
        },
        "verdict": {"words": WORDS, "chosen": CHOSEN, "probes": probes(panel, context.own), "most_tied": MOST_TIED},
        "axes": {name: _dictionary(panel.cells[name]) for name in CELL},
        "facts": {name: _floats(panel.cells[name]) for name in (*FACTS, "n_test", "has_text")},
        "methods": [_method(panel, context, name) | {"hits": packed.get(name, "")} for name in panel.methods],
        "metrics": {
            key: {"title": metric_name(m), "less": m.less_is_better, "digits": m.digits, "scale": m.scale}
            for key, m in ((key, found.metric) for key, found in measured.items())
        },
        "order": story_first(panel, context.own),
        "curves": _curves(panel),
        "ratios": FLAT_RATIOS,
        "sketches": [_sketch(sketch) for sketch in context.sketches],
        "sketches_absent": context.sketches_absent,
        "headroom": [[*stratum, round(value, 4)] for stratum, value in sorted(context.headroom.items())],
        "latex": LATEX,
        "latex_width": NO_WIDER,
        "resamples": RESAMPLES,
        "least_datasets": LEAST_DATASETS,
        "few_datasets": FEW_DATASETS,
        **_bootstrap(len(panel.names("dataset"))),
        **hits,
    }


def as_script(data: dict[str, Any]) -> str:
    """JSON that cannot end its script element, whatever names it holds."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _method(panel: Panel, context: Context, name: str) -> dict[str, Any]:
    return {
        "key": name,
        "title": panel.titles[name],
        "reference": name not in panel.free_methods(),
        "transductive": name in panel.transductive,
        "accuracy": _floats(panel.column(name)),
        "measured": {
            key: _floats(found.column(name)) for key, found in context.measured.items() if key != ACCURACY.key
        },
        "fit_seconds": _floats(panel.column(name, "fit_seconds")),
        "score_seconds": _floats(panel.column(name, "score_seconds")),
        **_fitted(panel, name),
    }


def _fitted(panel: Panel, method: str) -> dict[str, Any]:
    """Fitted numbers as columns, the few that are words as lists, and the evidence each was chosen from."""
    numbers: dict[str, Array] = {}
    words: dict[str, Array] = {}
    for cell, selected in enumerate(panel.selected(method)):
        for name, value in _flat(selected):
            if isinstance(value, bool | str):
                words.setdefault(name, np.full(len(panel), "", object))[cell] = str(value)
            else:
                numbers.setdefault(name, np.full(len(panel), np.nan))[cell] = value
    came_from: dict[str, str] = {}
    for text in dict.fromkeys(panel.recorded(method, "selected_from")):
        came_from |= json.loads(text) if text else {}
    texts: dict[tuple[str, str], int] = {}
    unusual = {}
    for cell, record in enumerate(zip(panel.recorded(method, "status"), panel.recorded(method, "reason"), strict=True)):
        status, reason = record
        if status not in ("ok", None):
            first_line = reason.splitlines()[0] if reason else ""
            unusual[str(cell)] = texts.setdefault((status, first_line), len(texts))
    return {
        "fitted": {name: _floats(values) for name, values in numbers.items()},
        "words": {name: _dictionary(values.astype(str)) for name, values in words.items()},
        "from": came_from,
        "unusual": {"texts": list(texts), "cells": unusual},
    }


def _flat(selected: dict[str, Any]) -> list[tuple[str, Any]]:
    """`{"lambda": {"mean": …}}` as `lambda.mean`; curves are carried elsewhere."""
    values = []
    for name, value in selected.items():
        if isinstance(value, dict):
            values += [(f"{name}.{part}", inner) for part, inner in value.items()]
        else:
            values.append((name, value))
    return [(name, v) for name, v in values if isinstance(v, bool | int | float | str)]


def _curves(panel: Panel) -> dict[str, Any]:
    """Accuracy over the ratios: the oracle's on the test set, leave-one-out's on the shots."""
    stored = {
        name: [ratio_curve(selected, evidence) for selected in panel.selected(method)]
        for name, method, evidence in (("oracle", ORACLE, "test"), ("loo", LOO, "support"))
    }
    points = max((len(curve) for curves in stored.values() for curve in curves if curve), default=0)
    per_cell = len(stored) * points * 2 * 4 / 3
    affordable = max(1, math.floor(CURVE_BYTES / max(per_cell, 1)))
    kept = np.sort(np.lexsort((np.arange(len(panel)), panel.seed))[:affordable])
    unknown = [math.nan] * points

    def carried(curves: list[list[float] | None]) -> str:
        """Base64 of 16-bit integers in hundredths of a per cent; 65535 where unknown."""
        values = np.array([c if c and len(c) == points else unknown for c in (curves[i] for i in kept)])
        return _base64(np.where(np.isfinite(values), np.round(np.nan_to_num(values) * 1e4), 65535).astype("<u2"))

    places = {"cells": kept.tolist(), "total": len(panel), "points": points}
    return places | {name: carried(curves) for name, curves in stored.items()}


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


def _bootstrap(datasets: int) -> dict[str, Any]:
    """By the number of datasets that a filter may leave: Student-t quantiles and the report's draws.

    A resample of G datasets is 2·G bits: a 1 for each time that a dataset is drawn, a 0 before the next dataset.
    """
    draws, room = {}, DRAW_BYTES
    for G in range(datasets, 1, -1):
        counts = draw_counts(G, RESAMPLES, SEED).astype(int)
        bits = np.ones((RESAMPLES, 2 * G), bool)
        np.put_along_axis(bits, np.cumsum(counts, axis=1) + np.arange(G), False, axis=1)
        packed = _base64(np.packbits(bits))
        room -= len(packed)
        if room < 0:
            break
        draws[G] = packed
    return {"t": {G: round(critical_value(G - 1, LEVEL), 6) for G in range(2, datasets + 1)}, "draws": draws}


def _hits(panel: Panel) -> tuple[dict[str, Any], dict[str, str]]:
    """What the interval over draws and pictures needs, and by method the test pictures that it gets right: bits, cell
    by cell where it has a result. Nothing where hits are not kept or the page has no room for enough of them."""
    sizes = panel.n_test
    share = min(1.0, HIT_BYTES / max(float(np.isfinite(panel.value).sum(axis=1) @ sizes) / 6, 1))
    counts = np.floor(share * sizes).astype(int)
    if not len(panel) or (counts < np.minimum(LEAST_PICTURES, sizes)).any():
        return {}, {}
    rng = np.random.default_rng(SEED)
    keys = list(zip(panel.dataset.tolist(), sizes.tolist(), counts.tolist(), strict=True))
    chosen = {key: np.sort(rng.permutation(key[1])[: key[2]]) for key in sorted(set(keys))}
    packed = {}
    for method in panel.methods:
        kept = hits_of(panel, method)
        if not np.array_equal([hits is not None for hits in kept], np.isfinite(panel.column(method))):
            return {}, {}
        known = (hits[chosen[key]] for key, hits in zip(keys, kept, strict=True) if hits is not None)
        packed[method] = _base64(np.concatenate([np.empty(0, np.uint8), *map(np.packbits, known)]))
    thinned = f"What test pictures add is estimated from {share:.0%} of them." if share < 1 else ""
    return {
        "hit_counts": counts.tolist(),
        "hit_bytes": (-(-counts // 8)).tolist(),
        "hits_thinned": thinned,
        "t_inverse": [round(critical_value(T_STEPS / max(step, 1e-9), LEVEL), 5) for step in range(T_STEPS + 1)],
        "least_draws": LEAST_DRAWS,
        "tie": TIE,
    }, packed


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


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")
