"""What the ratio is worth and which heads are better than its best: findings with intervals, a verdict in few lines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kshot.report.notes import cells_in_words, failures, lacking_shots, left_out
from kshot.report.slices import CLAP, FOLD_GDA, GAUSS_PROBE, JS, LOO, LPP, NCM, ORACLE, ZERO_SHOT, focus, primary
from kshot.report.table import interval, number
from kshot.stats.bootstrap import Estimate, cluster_mean
from kshot.stats.crossed import hits_of
from kshot.stats.leaderboard import Leaderboard, leaderboard, paired, with_draws_and_pictures
from kshot.stats.panel import Panel

AGAINST_ORACLE = (LOO, JS, CLAP, LPP, FOLD_GDA, GAUSS_PROBE)
TUNED = "the tuned ratio"
# So many tied heads are named; the leaderboard marks them all.
MOST_NAMED = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference in percentage points and a sentence about it, of at most fifteen words."""

    method: str
    estimate: Estimate
    sentence: str


def findings(panel: Panel, own: Sequence[str] = ()) -> list[Finding]:
    """What the ratio tuned on the test labels is worth, and heads against it: the paper's, ours, and the reader's own
    (`own`); over the cells of the leaderboard."""
    counted = _ranked(panel)
    if not np.isfinite(counted.column(ORACLE)).any():
        return []
    worth, ends = paired(counted, ORACLE, ZERO_SHOT), _over_better_end(counted)
    made = []
    if worth.n:
        made.append(Finding(ORACLE, worth, f"The ratio tuned on test labels gains {interval(worth)} over zero-shot."))
    if ends.n:
        words = f"Over text alone or pictures alone, whichever is better, it gains {interval(ends)}."
        made.append(Finding(ORACLE, ends, words))
    free = counted.free_methods()
    heads = [method for method in dict.fromkeys((*own, *AGAINST_ORACLE)) if method in free]
    gaps = {method: paired(counted, method, ORACLE) for method in heads}
    return [*made, *(Finding(m, gap, _compared(counted.titles[m], gap)) for m, gap in gaps.items() if gap.n)]


def verdict(panel: Panel, own: Sequence[str] = ()) -> list[str]:
    """At most five lines, and one for each thing that a reader must know: cells left out, failures, simulation."""
    board, made = leaderboard(primary(panel)), findings(panel, own)
    told_about = (ORACLE, LOO, CLAP, *own)
    first = {finding.method: finding.sentence for finding in reversed(made) if finding.method in told_about}
    lines = [use(panel, board), *(first[method] for method in told_about if method in first)]
    if not made:
        lines.append(f"What the ratio is worth is unknown: no result of {ORACLE}.")
    return [*lines, *caveats(panel)]


def use(panel: Panel, board: Leaderboard) -> str:
    """`Use CLAP: 73.4 % over K≥2; not told apart from it: LP++ and 2 more.`"""
    if not board.ranked or board.ranked[0].mean != board.ranked[0].mean:
        return "No validation-free head is ranked: none has a result in every cell."
    leader = board.ranked[0]
    tied = tied_heads(panel, board)
    mean = number(leader.mean, panel.metric.digits)
    unit = " %" if panel.metric.scale == 100 else f" ({panel.metric.title})"
    others = {"none": "", "unknown": "; no interval tells it apart"}.get(tied, f"; not told apart from it: {tied}")
    return f"Use {panel.titles[leader.method]}: {mean}{unit} over {board.counted}{others}."


def tied_heads(panel: Panel, board: Leaderboard) -> str:
    """The heads that are not told apart from the leader, the best of them named."""
    behind = {placing.method: placing.behind_leader for placing in board.ranked[1:]}
    compared = {method: estimate for method, estimate in behind.items() if estimate and estimate.n}
    if compared and all(estimate.low is None for estimate in compared.values()):
        return "unknown"
    tied = [panel.titles[method] for method, estimate in compared.items() if estimate.reaches_zero]
    more = f" and {len(tied) - MOST_NAMED} more" if len(tied) > MOST_NAMED else ""
    return ", ".join(tied[:MOST_NAMED]) + more if tied else "none"


def caveats(panel: Panel) -> list[str]:
    """Which cells count and what the intervals are over; then what is left out, has failed, is simulated."""
    shown, counted = primary(panel), _ranked(panel)
    over = {1: "its draws and pictures", 2: "their draws and pictures"}
    intervals = over.get(len(counted.names("dataset")), "datasets")
    cells = f"Tier {focus(panel).tier}, {cells_in_words(counted)}; intervals over {intervals}."
    failed, absent, lacking = failures(panel), left_out(panel, shown), len(lacking_shots(shown))
    return [
        *([cells] if len(counted) else []),
        *(
            [f"Not counted: pairs of dataset and backbone that lack a K ({lacking}); see leaderboard."]
            if lacking
            else []
        ),
        *([absent] if absent else []),
        *([f"Failed records, which count in no mean: {failed}."] if failed else []),
        *(["SIMULATED features: generated numbers, no pictures."] if panel.origin.simulated else []),
    ]


def _ranked(panel: Panel) -> Panel:
    """The cells of the leaderboard."""
    shown = primary(panel)
    return shown.where(shown.present_at_every_shot_count())


def _compared(title: str, gap: Estimate) -> str:
    if gap.low is None:
        return f"{title} minus {TUNED}: {interval(gap)}."
    if not gap.excludes_zero:
        return f"{title} is not told apart from {TUNED}: {interval(gap)}."
    return f"{title} is {'better' if gap.mean > 0 else 'worse'} than {TUNED}: {interval(gap)}."


def _over_better_end(panel: Panel) -> Estimate:
    """Gain over the better of text alone and pictures alone, a choice that needs no blending."""
    text, pictures = (panel.column(method) for method in (ZERO_SHOT, NCM))
    gain = cluster_mean(panel.column(ORACLE) - np.maximum(text, pictures), panel.dataset)
    both = zip(text >= pictures, hits_of(panel, ZERO_SHOT), hits_of(panel, NCM), strict=True)
    better = [of_text if first else of_pictures for first, of_text, of_pictures in both]
    return with_draws_and_pictures(gain, panel, hits_of(panel, ORACLE), better)
