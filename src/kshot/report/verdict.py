"""The verdict in words: what the knob is worth, and whether a probe beats its ceiling.

The page says the same sentences about the cells that its filters leave; it is given `WORDS` and `CHOSEN`.
"""

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
    failures,
    focus,
    primary,
)
from kshot.report.numbers import interval, number
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.panel import Panel

PROBES = (CLAP, LPP, FOLD_GDA, GAUSS_PROBE)
# So many tied heads are named; the leaderboard marks them all.
MOST_TIED = 5
CHOSEN = {LOO: "without a single extra label", JS: "by the closed form that minimises prototype error"}
WORDS = {
    "no text": "These records hold no cell with text prototypes, so there is no ratio to judge.",
    "no oracle": f"What the ratio is worth is unknown: these records do not hold {ORACLE}.",
    "worth": "Blending at its best, with the ratio tuned on the test labels, is worth {gain} points over "
    "zero-shot{ends}: nobody who turns this knob can get more.",
    "ends": ", and {gain} over the better of text alone and pictures alone",
    "chosen": "Chosen {how} ({title}), the ratio ends {gap} points from that ceiling ({n} cells).",
    "no probe": "Whether {method} beats the ceiling is unknown: these records do not hold it.",
    "probe": "{title}, which needs no validation data, {stands} the ratio tuned on test labels: {overall} points over "
    "all K, {late} from K = 4.",
    "unsure": "stands (no interval from one dataset) against",
    "level": "is level (the interval reaches zero) with",
    "above": "beats",
    "below": "loses to",
    "leader": "The best validation-free head here is {title} with {mean} % over {counted}; {others}.",
    "tied": "tied with it: {titles}",
    "more": " and {n} more",
    "alone": "no other validation-free method is tied with it",
    "cells": "Tier {tier}, {n} cells in {G} dataset(s); the intervals say how far the figures might move with other "
    "datasets of the same kind.",
    "one dataset": "One dataset gives no interval: nothing is known about other datasets.",
    "failed": "Failed records, which count in no mean: {failed}.",
    "simulated": "The features are SIMULATED: generated numbers, no pictures. They show the tool, not an encoder.",
}


def verdict(panel: Panel) -> list[str]:
    """A few sentences, each with its numbers; what the records cannot answer is said."""
    shown = primary(panel)
    if not len(shown.shots):
        return [WORDS["no text"]]
    return [*_worth(shown), *_probes(shown), *_leader(shown), *_caveats(panel, shown)]


def _worth(panel: Panel) -> list[str]:
    if ORACLE not in panel.methods:
        return [WORDS["no oracle"]]
    sentences = []
    if ZERO_SHOT in panel.methods:
        gain = paired(panel, ORACLE, ZERO_SHOT)
        sentences.append(WORDS["worth"].format(gain=interval(gain), ends=_over_better_end(panel)))
    for method, how in CHOSEN.items():
        gap = paired(panel, method, ORACLE)
        if gap.n:
            title = panel.titles[method]
            sentences.append(WORDS["chosen"].format(how=how, title=title, gap=interval(gap), n=gap.n))
    return sentences


def _over_better_end(panel: Panel) -> str:
    """A ratio that only ever chooses text or pictures alone needs no blending."""
    if NCM not in panel.methods:
        return ""
    ends = np.maximum(panel.column(ZERO_SHOT), panel.column(NCM))
    gain = cluster_mean(panel.column(ORACLE) - ends, panel.dataset)
    return WORDS["ends"].format(gain=interval(gain))


def _probes(panel: Panel) -> list[str]:
    sentences = []
    for method in PROBES:
        if method not in panel.methods:
            sentences += [WORDS["no probe"].format(method=method)] if method in (CLAP, LPP) else []
        elif ORACLE in panel.methods:
            surplus = paired(panel, method, ORACLE)
            late = paired(panel.where(panel.shots >= 4), method, ORACLE)
            sentence = WORDS["probe"].format(
                title=panel.titles[method], stands=_stands(surplus), overall=interval(surplus), late=interval(late)
            )
            sentences.append(sentence)
    return sentences


def _stands(surplus: Estimate) -> str:
    if surplus.low is None:
        return WORDS["unsure"]
    if not surplus.excludes_zero:
        return WORDS["level"]
    return WORDS["above" if surplus.mean > 0 else "below"]


def _leader(panel: Panel) -> list[str]:
    board = leaderboard(panel)
    if not board.ranked or board.ranked[0].mean != board.ranked[0].mean:
        return []
    first = board.ranked[0]
    tied = [panel.titles[placing.method] for placing in board.ranked if placing.tied]
    more = WORDS["more"].format(n=len(tied) - MOST_TIED) if len(tied) > MOST_TIED else ""
    others = WORDS["tied"].format(titles=", ".join(tied[:MOST_TIED])) + more if tied else WORDS["alone"]
    title, mean = panel.titles[first.method], number(first.mean)
    return [WORDS["leader"].format(title=title, mean=mean, counted=board.counted, others=others)]


def _caveats(panel: Panel, shown: Panel) -> list[str]:
    datasets = len(set(shown.dataset.tolist()))
    sentences = [WORDS["cells"].format(tier=focus(panel).tier, n=len(shown.shots), G=datasets)]
    if datasets == 1:
        sentences.append(WORDS["one dataset"])
    if failed := failures(panel):
        sentences.append(WORDS["failed"].format(failed=failed))
    if panel.simulated:
        sentences.append(WORDS["simulated"])
    return sentences
