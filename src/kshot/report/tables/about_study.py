"""What the study is made of, what it costs, and the same cells computed in another way."""

import json
from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import Float

from kshot.report.context import Context
from kshot.report.notes import cells_in_words, over_datasets
from kshot.report.slices import ZERO_SHOT
from kshot.report.table import ABSENT, SECONDS, Number, Table, content, count, interval, number
from kshot.stats.bootstrap import cluster_mean, finite_median
from kshot.stats.panel import Panel
from kshot.types import Array

SHOT_SLICES = {"all K": (1, 10**9), "K=1": (1, 1), "K=2": (2, 2), "K≥4": (4, 10**9)}


def datasets(panel: Panel, context: Context) -> Table:
    """Sizes, and zero-shot accuracy against its published band where one applies."""
    rows = []
    for dataset in panel.names("dataset"):
        own = panel.where(panel.dataset == dataset)
        gate = context.gates.get(dataset)
        judged = own.where((own.backbone == context.band_backbone) & (own.tier == context.band_tier))
        shown = judged if len(judged) else own.with_text()
        accuracy = float(shown.column(ZERO_SHOT).mean()) if len(shown) else float("nan")
        band = gate.band if gate else None
        verdict = "not judged"
        if band and len(judged) and accuracy == accuracy:
            verdict = "pass" if band[0] <= accuracy <= band[1] else "FAIL"
        rows.append(
            (
                dataset,
                number(float(own.n_classes[0]), 0),
                count(own.n_test[0], ",d"),
                gate.split if gate else ABSENT,
                count(len(own)),
                number(accuracy),
                f"{band[0]:g}–{band[1]:g}" if band else ABSENT,
                verdict,
            )
        )
    bands = f"{context.band_backbone} with tier {context.band_tier}" if context.band_backbone else "no backbone"
    return content(
        ("dataset", "classes", "test pictures", "split", "cells", "zero-shot %", "published", "gate"),
        rows,
        [
            f"Zero-shot accuracy must lie in the published band, which is known for {bands}. Where it is not known, "
            f"the table shows the mean over all backbones and tiers, without a judgement. {cells_in_words(panel)}; no "
            "intervals: the figures do not vary over draws."
        ],
    )


def cost(panel: Panel, context: Context) -> Table:
    """Seconds per fit and per thousand pictures scored, as recorded, over the cells that hold every method."""
    common = panel.with_all(panel.methods)
    rows = []
    for method in panel.methods:
        everywhere = panel.column(method, "fit_seconds")
        if not np.isfinite(everywhere).any():
            continue
        largest = int(np.nanargmax(everywhere))
        per_thousand = 1000 * common.column(method, "score_seconds") / common.n_test
        rows.append(
            (
                panel.titles[method],
                Number(finite_median(common.column(method, "fit_seconds")), SECONDS),
                Number(float(everywhere[largest]), SECONDS),
                f"{panel.dataset[largest]} · {panel.backbone[largest]}, K={panel.shots[largest]}",
                Number(finite_median(per_thousand), SECONDS),
                count(np.count_nonzero(np.isfinite(everywhere))),
            )
        )
    return content(
        ("method", "fit, median", "fit, longest", "longest at", "score 1,000 pictures, median", "n"),
        rows,
        [
            f"Wall time on cached features as the records hold it; medians over the {len(common)} cells where "
            f"every method exists, of {cells_in_words(panel)}; longest over the n cells of a method. It depends on the "
            "machine and on what else ran there. An oracle's fit includes scoring the test set."
        ],
    )


def precision(panel: Panel, context: Context) -> Table | str:
    """What moves when the same cells are computed in another precision."""
    other = context.other_precision
    if other is None:
        return (
            f'these records are {panel.origin.dtype} only. Run the same grid with another dtype = "…" and give its '
            "folder with --precision."
        )
    shared = _shared(panel, other)
    rows = []
    for method, move in _moves(other, shared, panel.methods):
        moved = np.abs(move[np.isfinite(move)])
        if len(moved):
            identical = count(np.count_nonzero(moved == 0))
            figures = (number(float(moved.mean()), 3), number(float(moved.max()), 2))
            change = interval(cluster_mean(move, shared.dataset))
            rows.append((panel.titles[method], count(len(moved)), identical, *figures, change))
    return content(
        ("method", "cells", "identical", "mean |move|", "largest move", "mean move"),
        rows,
        [
            f"{other.origin.dtype} minus {panel.origin.dtype}, {cells_in_words(shared)} that both have; "
            "Student-t intervals, cluster bootstrap. Other study: "
            f"{other.origin.study}, inputs {other.origin.inputs}."
        ],
    )


def augmentation(panel: Panel, context: Context) -> Table | str:
    """What augmented views change, paired with the study that has none: overall, and where one shot is all there is."""
    used, base = _views_of(panel), context.without_views
    if not used:
        return "the methods of these records were given no augmented views."
    if base is None:
        return "give the folder of the same cells without views with --base."
    shared = _shared(base, panel)
    slices = [(shared.shots >= least) & (shared.shots <= most) for least, most in SHOT_SLICES.values()]
    rows = []
    for method, move in _moves(panel, shared, used):
        changes = (interval(cluster_mean(move[keep], shared.dataset[keep])) for keep in slices)
        rows.append((panel.titles[method], used[method], *changes, count(np.count_nonzero(np.isfinite(move)))))
    return content(
        ("method", "views", *SHOT_SLICES, "n"),
        rows,
        [
            f"The same shots and test pictures in study {base.origin.study}, inputs {base.origin.inputs}.",
            over_datasets(shared),
        ],
    )


def _views_of(panel: Panel) -> dict[str, str]:
    """The methods that were given views, and which."""
    found: dict[str, str] = {}
    pairs = zip(panel.records["method"].to_pylist(), panel.records["recipe"].to_pylist(), strict=True)
    for method, text in dict.fromkeys(pairs):
        if text and (views := json.loads(text).get("views")):
            found[method] = f"{views['recipe']} × {views['count']}"
    return found


def _shared(panel: Panel, other: Panel) -> Panel:
    """The cells of the first panel that the other has too."""
    there = set(other.cell_keys())
    return panel.where(np.array([cell in there for cell in panel.cell_keys()], bool))


def _moves(panel: Panel, shared: Panel, methods: Iterable[str]) -> Iterator[tuple[str, Float[Array, " n"]]]:
    """For each method that both have, panel minus the shared cells of the other, in their order."""
    row = {cell: index for index, cell in enumerate(panel.cell_keys())}
    position = [row[cell] for cell in shared.cell_keys()]
    for method in methods:
        if method in panel.methods and method in shared.methods:
            yield method, panel.column(method)[position] - shared.column(method)
