"""What the study is made of and what it costs: datasets with their gate, seconds, precision."""

import numpy as np
from jaxtyping import Float

from kshot.report.context import Context
from kshot.report.focus import ZERO_SHOT, counted, provenance, sentences
from kshot.report.numbers import ABSENT, SECONDS, Number, count, number
from kshot.report.table import Table
from kshot.stats.panel import Panel
from kshot.types import Array


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
    bands = f"{context.band_backbone} with tier {context.band_tier}" if context.band_backbone else "no backbone"
    return Table(
        key="datasets",
        title="Datasets and the sanity gate",
        columns=("dataset", "classes", "test pictures", "split", "cells", "zero-shot %", "published", "gate"),
        rows=tuple(rows),
        caption=sentences(
            f"Zero-shot accuracy must lie in the published band, which is known for {bands}. Where it is not known, "
            f"the table shows the mean over all backbones and tiers, without a judgement. {counted(panel)}; no "
            "intervals: the figures do not vary over draws.",
            provenance(panel),
        ),
    )


def _gate_word(accuracy: float, band: tuple[int, int] | None, judged: bool) -> str:
    if band is None or not judged or accuracy != accuracy:
        return "not judged"
    return "pass" if band[0] <= accuracy <= band[1] else "FAIL"


def cost_table(panel: Panel, context: Context) -> Table:
    """Seconds per fit and per thousand pictures scored, as recorded, over the cells that hold every method."""
    common = panel.with_all(panel.methods)
    rows = []
    for method in panel.methods:
        everywhere = panel.column(method, "fit_seconds")
        if not np.isfinite(everywhere).any():
            continue
        largest = int(np.nanargmax(everywhere))
        where = f"{panel.dataset[largest]} · {panel.backbone[largest]}, K={panel.shots[largest]}"
        per_thousand = 1000 * common.column(method, "score_seconds") / common.n_test
        rows.append(
            (
                panel.titles[method],
                Number(_median(common.column(method, "fit_seconds")), SECONDS),
                Number(float(everywhere[largest]), SECONDS),
                where,
                Number(_median(per_thousand), SECONDS),
                count(np.count_nonzero(np.isfinite(everywhere))),
            )
        )
    return Table(
        key="cost",
        title="Cost per method",
        columns=("method", "fit, median", "fit, longest", "longest at", "score 1,000 pictures, median", "n"),
        rows=tuple(rows),
        caption=sentences(
            f"Wall time on cached features as the records hold it; medians over the {len(common.shots)} cells where "
            f"every method exists, of {counted(panel)}; longest over the n cells of a method. It depends on the "
            "machine and on what else ran there. An oracle's fit includes scoring the test set.",
            provenance(panel),
        ),
    )


def _median(seconds: Float[Array, " n"]) -> float:
    return float(np.median(seconds)) if len(seconds) else float("nan")
