"""What the study is made of and what it costs: datasets with their gate, seconds, precision."""

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import ZERO_SHOT, counted, provenance, sentences
from kshot.report.numbers import ABSENT, SECONDS, Number, count, interval, number
from kshot.report.table import Table
from kshot.stats.bootstrap import cluster_mean
from kshot.stats.panel import CELL, Panel


def datasets_table(panel: Panel, context: Context) -> Table:
    """Sizes, and zero-shot accuracy against its published band where one applies."""
    rows = []
    for dataset in sorted(set(panel.dataset.tolist())):
        own = panel.where(panel.dataset == dataset)
        gate = context.gates.get(dataset)
        judged = own.where((own.backbone == context.band_backbone) & (own.tier == context.band_tier))
        shown = judged if len(judged.shots) else own.with_text()
        accuracy = float(shown.column(ZERO_SHOT).mean()) if len(shown.shots) else float("nan")
        band = gate.band if gate else None
        rows.append(
            (
                dataset,
                number(float(own.n_classes[0]), 0),
                count(own.n_test[0], ",d"),
                gate.split if gate else ABSENT,
                count(len(own.shots)),
                number(accuracy),
                ABSENT if band is None else f"{band[0]:g}–{band[1]:g}",
                _gate_word(accuracy, band, bool(len(judged.shots))),
            )
        )
    bands = (
        f"{context.band_backbone} with tier {context.band_tier}" if context.band_backbone else "no backbone"
    )
    return Table(
        key="datasets",
        title="Datasets and the sanity gate",
        columns=("dataset", "classes", "test pictures", "split", "cells", "zero-shot %", "published", "gate"),
        rows=tuple(rows),
        caption=sentences(
            f"Zero-shot accuracy must land in the published band, which holds for {bands}; elsewhere the mean over "
            f"all backbones and tiers is told and not judged. {counted(panel)}; no intervals: the figures do not vary "
            "over draws.",
            provenance(panel),
        ),
    )


def _gate_word(accuracy: float, band: tuple[int, int] | None, judged: bool) -> str:
    if band is None or not judged or accuracy != accuracy:
        return "not judged"
    return "pass" if band[0] <= accuracy <= band[1] else "FAIL"


def cost_table(panel: Panel, context: Context) -> Table:
    """Seconds per fit and per thousand pictures scored, as recorded."""
    rows = []
    for method in panel.methods:
        fit, score = panel.column(method, "fit_seconds"), panel.column(method, "score_seconds")
        known = np.isfinite(fit)
        if not known.any():
            continue
        largest = np.flatnonzero(known)[np.argmax(fit[known])]
        where = f"{panel.dataset[largest]} · {panel.backbone[largest]}, K={panel.shots[largest]}"
        per_thousand = 1000 * (score[known] / panel.n_test[known])
        rows.append(
            (
                panel.titles[method],
                Number(float(np.median(fit[known])), SECONDS),
                Number(float(fit[largest]), SECONDS),
                where,
                Number(float(np.median(per_thousand)), SECONDS),
                count(np.count_nonzero(known)),
            )
        )
    return Table(
        key="cost",
        title="Cost per method",
        columns=("method", "fit, median", "fit, longest", "longest at", "score 1,000 pictures, median", "n"),
        rows=tuple(rows),
        caption=sentences(
            f"Wall time on cached features as the records hold it, {counted(panel)}; it depends on the machine and on "
            "what else ran there. An oracle's fit includes scoring the test set.",
            provenance(panel),
        ),
    )


def precision_table(panel: Panel, context: Context) -> Table:
    """What moves when the same cells are computed in another precision."""
    key, title = "precision", "Precision arm: what moves (percentage points)"
    other = context.other_precision
    columns = ("method", "cells", "identical", "mean |move|", "largest move", "mean move")
    if other is None:
        why = (
            f'Missing: these records are {panel.dtype} only. Run the same grid with another dtype = "…" and give its '
            "folder with --precision."
        )
        return Table(title, columns, (), sentences(why, provenance(panel)), key=key)
    here, there = _cells(panel), _cells(other)
    shared = sorted(here.keys() & there.keys())
    left = panel.where(np.isin(np.arange(len(panel.shots)), [here[cell] for cell in shared]))
    position = [there[cell] for cell in _cells(left)]
    rows = []
    for method in (m for m in panel.methods if m in other.methods):
        move = other.column(method)[position] - left.column(method)
        known = move[np.isfinite(move)]
        if len(known):
            moved = np.abs(known)
            figures = (number(float(moved.mean()), 3), number(float(moved.max()), 2))
            identical = count(np.count_nonzero(moved == 0))
            change = interval(cluster_mean(move, left.dataset))
            rows.append((panel.titles[method], count(len(known)), identical, *figures, change))
    return Table(
        key=key,
        title=title,
        columns=columns,
        rows=tuple(rows),
        caption=sentences(
            f"{other.dtype} minus {panel.dtype}, n = {len(shared)} shared cells, G = {len(np.unique(left.dataset))} "
            f"datasets; Student-t intervals, cluster bootstrap. Other study: {other.study}, hash {other.study_hash}.",
            provenance(panel),
        ),
    )


def _cells(panel: Panel) -> dict[tuple, int]:
    keys = zip(*(getattr(panel, name).tolist() for name in CELL), strict=True)
    return {key: index for index, key in enumerate(keys)}
