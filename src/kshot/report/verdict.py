"""The verdict in words: what the knob is worth, and whether a probe beats its ceiling.

The page says the same sentences about the cells that its filters leave; it is given `WORDS` and `CHOSEN`.
"""

from collections.abc import Sequence

import numpy as np

from kshot.report.notes import BACK, NOT_AT_EVERY_K, NOT_IN_TIER, WHERE, cut_short, failures, left_out, where
from kshot.report.slices import CLAP, FOLD_GDA, GAUSS_PROBE, JS, LOO, LPP, NCM, ORACLE, ZERO_SHOT, focus, primary
from kshot.report.table import in_words, number
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.crossed import hits_of
from kshot.stats.leaderboard import FEW_DATASETS, Leaderboard, leaderboard, paired, with_draws_and_pictures
from kshot.stats.panel import Panel

PROBES = (CLAP, LPP, FOLD_GDA, GAUSS_PROBE)
# So many tied heads are named; the leaderboard marks them all.
MOST_TIED = 5
CHOSEN = {LOO: "without a single extra label", JS: "by the closed form that minimises prototype error"}
WORDS = {
    "no oracle": f"What the ratio is worth is unknown: these records hold no result of {ORACLE}.",
    "worth": "Blending at its best, with the ratio tuned on the test labels, is worth {gain} points over "
    "zero-shot{ends}{where}: no way to choose this knob gives more.",
    "ends": ", and {gain} over the better of text alone and pictures alone",
    "chosen": "With the ratio chosen {how} ({title}), accuracy is {gap} points from that limit ({n} cells).",
    "no probe": "Whether {method} beats the ceiling is unknown: these records hold no result of it.",
    "probe": "{title}, which needs no validation data, {stands} the ratio tuned on test labels{where}: {overall} "
    "points over all K{late}.",
    "late": ", {late} from K = 4",
    "unsure": "stands (no interval: that takes three datasets, or hits of three draws) against",
    "level": "is level (the interval reaches zero) with",
    "above": "beats",
    "below": "loses to",
    "leader": "The best validation-free head {here} is {title} with {mean} % over {counted}; {others}.",
    "no leader": "No validation-free head is ranked: none has a result in every cell.",
    "tied": "not told apart from it, because the interval over {over} reaches zero: {titles}",
    "more": " and {n} more",
    "alone": "no other validation-free method is tied with it{where}",
    "no ties": "ties are unknown, because an interval takes three datasets, or hits of three draws",
    "datasets": "{G} datasets",
    "draws": "draws and test pictures",
    "here": "here",
    "only one": "no other one has a result in every cell",
    "cells": "Tier {tier}, {n} cells in {G} datasets; the intervals say how far the figures might move with other "
    "datasets of the same kind.",
    "few": 'So few datasets give a wide interval; "here": over draws of shots and test pictures on these alone.',
    "on these": "Tier {tier}, {n} cells; the intervals are over draws of shots and test pictures {where}. Nothing is "
    "known about other datasets.",
    **{f"where {G}": words for G, words in WHERE.items()},
    "at every K": NOT_AT_EVERY_K,
    "in the tier": NOT_IN_TIER,
    "back": BACK,
    "failed": "Failed records, which count in no mean: {failed}.",
    "simulated": "The features are SIMULATED: generated numbers, no pictures. They show the tool, not an encoder.",
}


def verdict(panel: Panel, own: Sequence[str] = ()) -> list[str]:
    """A few sentences, each with its numbers, over the cells of the leaderboard; what the records cannot answer is
    named. `own`: methods that do not come with kshot."""
    shown = primary(panel)
    ranked = shown.where(shown.present_at_every_shot_count())
    if not len(ranked):
        return [WORDS["no leader"], *_left_out(panel, shown)]
    judged = _probes(ranked, probes(panel, own))
    return [*_worth(ranked), *judged, *_leader(ranked), *_caveats(panel, shown, ranked)]


def probes(panel: Panel, own: Sequence[str]) -> list[str]:
    """Heads that are compared with the oracle ratio: those of the paper, ours, and the reader's own."""
    free = panel.free_methods()
    return [*PROBES, *(method for method in own if method in free)]


def _worth(panel: Panel) -> list[str]:
    if not _has_result(panel, ORACLE):
        return [WORDS["no oracle"]]
    sentences = []
    gain = paired(panel, ORACLE, ZERO_SHOT)
    if gain.n:
        sentences.append(WORDS["worth"].format(gain=in_words(gain), ends=_over_better_end(panel), where=_where(panel)))
    for method, how in CHOSEN.items():
        gap = paired(panel, method, ORACLE)
        if gap.n:
            title = panel.titles[method]
            sentences.append(WORDS["chosen"].format(how=how, title=title, gap=in_words(gap), n=gap.n))
    return sentences


def _over_better_end(panel: Panel) -> str:
    """Gain over the better of text alone and pictures alone, a choice that needs no blending."""
    text, pictures = (panel.column(method) for method in (ZERO_SHOT, NCM))
    gain = cluster_mean(panel.column(ORACLE) - np.maximum(text, pictures), panel.dataset)
    both = zip(text >= pictures, hits_of(panel, ZERO_SHOT), hits_of(panel, NCM), strict=True)
    better = [one if first else other for first, one, other in both]
    gain = with_draws_and_pictures(gain, panel, hits_of(panel, ORACLE), better)
    return WORDS["ends"].format(gain=in_words(gain)) if gain.n else ""


def _probes(panel: Panel, probes: Sequence[str]) -> list[str]:
    sentences = []
    for method in probes:
        if not _has_result(panel, method):
            told = method in (CLAP, LPP) or method in panel.methods
            title = panel.titles.get(method, method)
            sentences += [WORDS["no probe"].format(method=title)] if told else []
            continue
        surplus, late = (paired(part, method, ORACLE) for part in (panel, panel.where(panel.shots >= 4)))
        if surplus.n:
            sentence = WORDS["probe"].format(
                title=panel.titles[method],
                stands=_stands(surplus),
                where=_where(panel),
                overall=in_words(surplus),
                late=WORDS["late"].format(late=in_words(late)) if late.n else "",
            )
            sentences.append(sentence)
    return sentences


def _has_result(panel: Panel, method: str) -> bool:
    return bool(np.isfinite(panel.column(method)).any())


def _stands(surplus: Estimate) -> str:
    if surplus.low is None:
        return WORDS["unsure"]
    if not surplus.excludes_zero:
        return WORDS["level"]
    return WORDS["above" if surplus.mean > 0 else "below"]


def _leader(panel: Panel) -> list[str]:
    board = leaderboard(panel)
    if not board.ranked or board.ranked[0].mean != board.ranked[0].mean:
        return [WORDS["no leader"]]
    first = board.ranked[0]
    title, mean = panel.titles[first.method], number(first.mean)
    here = where(board.datasets) or WORDS["here"]
    others = _others(panel, board)
    return [WORDS["leader"].format(here=here, title=title, mean=mean, counted=board.counted, others=others)]


def _others(panel: Panel, board: Leaderboard) -> str:
    """Name the heads whose interval against the leader reaches zero."""
    behind = {panel.titles[placing.method]: placing.behind_leader for placing in board.ranked[1:]}
    compared = {title: found for title, found in behind.items() if found and found.n}
    if not compared:
        return WORDS["only one"]
    if all(found.low is None for found in compared.values()):
        return WORDS["no ties"]
    tied = [f"{title} {in_words(found)}" for title, found in compared.items() if found.reaches_zero]
    if not tied:
        return WORDS["alone"].format(where=_where(panel))
    more = WORDS["more"].format(n=len(tied) - MOST_TIED) if len(tied) > MOST_TIED else ""
    over = WORDS["draws" if where(board.datasets) else "datasets"].format(G=board.datasets)
    return WORDS["tied"].format(over=over, titles="; ".join(tied[:MOST_TIED])) + more


def _where(panel: Panel) -> str:
    """` on this dataset`; empty if an interval over datasets exists."""
    here = where(len(panel.names("dataset")))
    return f" {here}" if here else ""


def _left_out(panel: Panel, shown: Panel) -> list[str]:
    return [sentence for sentence in (cut_short(shown), left_out(panel, shown)) if sentence]


def _caveats(panel: Panel, shown: Panel, ranked: Panel) -> list[str]:
    datasets = len(ranked.names("dataset"))
    words = WORDS["on these" if where(datasets) else "cells"]
    sentences = [words.format(tier=focus(panel).tier, n=len(ranked), G=datasets, where=where(datasets))]
    if not where(datasets) and datasets <= FEW_DATASETS:
        sentences.append(WORDS["few"])
    sentences += _left_out(panel, shown)
    if failed := failures(panel):
        sentences.append(WORDS["failed"].format(failed=failed))
    if panel.origin.simulated:
        sentences.append(WORDS["simulated"])
    return sentences
