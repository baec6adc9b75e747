"""The first answer: which validation-free head to use at each K, and how sure that is."""

import numpy as np

from kshot.report.context import Context
from kshot.report.notes import cells_in_words, cut_short, intervals, left_out
from kshot.report.slices import ZERO_SHOT, focus, primary
from kshot.report.table import Table, content, interval, metric_name, number
from kshot.report.verdict import tied_heads
from kshot.stats.leaderboard import counting, leaderboard, paired
from kshot.stats.panel import Panel


def which_head(panel: Panel, context: Context) -> Table | str:
    """The best head at each K over the cells of the leaderboard, with those that are not told apart from it."""
    shown = primary(panel)
    counted = shown.where(shown.present_at_every_shot_count())
    shots = np.unique(counted.shots)
    slices = {f"K={k}": counted.where(counted.shots == k) for k in shots}
    if len(shots[shots >= 2]) > 1:
        slices["K≥2"] = counting(counted)
    digits = panel.metric.digits + (panel.metric.scale == 100)
    rows = []
    for name, cells in slices.items():
        board = leaderboard(cells)
        if board.ranked and (mean := board.ranked[0].mean) == mean:
            leader = board.ranked[0].method
            gain = interval(paired(cells, leader, ZERO_SHOT), digits)
            mean = number(mean, panel.metric.digits)
            rows.append((name, panel.titles[leader], mean, gain, tied_heads(panel, board)))
    if not rows:
        return "no validation-free head has a result in every cell."
    return content(
        ("shots", "use", metric_name(panel.metric), "minus zero-shot", "not told apart from it"),
        rows,
        [
            f"The best mean over {cells_in_words(counted)}, tier {focus(panel).tier}, the same for every head. A head "
            "is not told apart from the best where the interval of their difference holds zero.",
            cut_short(shown),
            left_out(panel, shown),
            intervals(counted),
        ],
        rule=len(shots),
        below_rule="all",
    )
