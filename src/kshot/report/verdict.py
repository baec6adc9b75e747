"""The verdict in words: what the knob is worth, and whether a probe beats its ceiling."""

import numpy as np

from kshot.report.focus import (
    CLAP,
    FOLD_GDA,
    GAUSS_PROBE,
    JS,
    LOO,
    LPP,
    NCM,
    ORACLE,
    ZERO_SHOT,
    focus,
    primary,
)
from kshot.report.numbers import interval, number
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.panel import Panel


def verdict(panel: Panel) -> list[str]:
    """A few sentences, each with its numbers; what the records cannot answer is said."""
    shown = primary(panel)
    if not len(shown.shots):
        return ["These records hold no cell with text prototypes, so there is no ratio to judge."]
    return [*_worth(shown), *_probes(shown), *_leader(shown), *_caveats(panel, shown)]


def _worth(panel: Panel) -> list[str]:
    if ORACLE not in panel.methods:
        return [f"What the ratio is worth is unknown: these records do not hold {ORACLE}."]
    found = []
    if ZERO_SHOT in panel.methods:
        gain = paired(panel, ORACLE, ZERO_SHOT)
        found.append(
            f"Blending at its best, with the ratio tuned on the test labels, is worth {interval(gain)} points over "
            f"zero-shot{_over_better_end(panel)}: nobody who turns this knob can get more."
        )
    for method, free in (
        (LOO, "without a single extra label"),
        (JS, "by the closed form that minimises prototype error"),
    ):
        if method in panel.methods:
            gap = paired(panel, method, ORACLE)
            if gap.n:
                found.append(
                    f"Chosen {free} ({panel.titles[method]}), the ratio ends {interval(gap)} points from that ceiling "
                    f"({gap.n} cells)."
                )
    return found


def _over_better_end(panel: Panel) -> str:
    """A ratio that only ever chooses text or pictures alone needs no blending."""
    if NCM not in panel.methods:
        return ""
    ends = np.fmax(panel.column(ZERO_SHOT), panel.column(NCM))
    gain = cluster_mean(panel.column(ORACLE) - ends, panel.dataset)
    return f", and {interval(gain)} over the better of text alone and pictures alone"


def _probes(panel: Panel) -> list[str]:
    found = []
    for method in (CLAP, LPP, FOLD_GDA, GAUSS_PROBE):
        if method not in panel.methods:
            if method in (CLAP, LPP):
                found.append(f"Whether {method} beats the ceiling is unknown: these records do not hold it.")
            continue
        if ORACLE in panel.methods:
            surplus = paired(panel, method, ORACLE)
            late = paired(panel.where(panel.shots >= 4), method, ORACLE)
            found.append(
                f"{panel.titles[method]}, which needs no validation data, {_against(surplus)} the ratio tuned on "
                f"test labels: {interval(surplus)} points over all K, {interval(late)} from K = 4."
            )
    return found


def _against(surplus: Estimate) -> str:
    if surplus.low is None:
        return "stands (no interval from one dataset) against"
    if not surplus.excludes_zero:
        return "is level (the interval reaches zero) with"
    return "beats" if surplus.mean > 0 else "loses to"


def _leader(panel: Panel) -> list[str]:
    ranked = leaderboard(panel).ranked
    if not ranked or ranked[0].mean != ranked[0].mean:
        return []
    tied = [panel.titles[s.method] for s in ranked if s.tied]
    others = f"tied with it: {', '.join(tied)}" if tied else "no other validation-free method is tied with it"
    return [
        f"The best validation-free head here is {panel.titles[ranked[0].method]} with {number(ranked[0].mean)} % over "
        f"K ≥ 2; {others}."
    ]


def _caveats(panel: Panel, shown: Panel) -> list[str]:
    datasets = len(set(shown.dataset.tolist()))
    found = [
        f"Tier {focus(panel).tier}, {len(shown.shots)} cells in {datasets} dataset(s); intervals ask whether the "
        "figure would survive another draw of datasets."
    ]
    if datasets == 1:
        found.append("One dataset gives no interval: nothing is known about other datasets.")
    if panel.simulated:
        found.append(
            "The features are SIMULATED: generated numbers, no pictures. They show the tool, not an encoder."
        )
    return found
