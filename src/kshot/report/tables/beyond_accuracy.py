"""All metrics side by side, over the same cells."""

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import cut_short, focus, left_out, primary, provenance, sentences
from kshot.report.numbers import best_of, named, written
from kshot.report.table import Table, absent_table
from kshot.stats.leaderboard import leaderboard
from kshot.stats.metrics import BINS
from kshot.stats.panel import Panel

# No merit of a head: it stands beside the ECE to be read with it.
NOISE = "ece_noise"


def metrics_table(panel: Panel, context: Context) -> Table:
    """All metrics over the same cells."""
    key, title = "metrics", "Beyond accuracy: means over the same cells"
    measured = {name: primary(found) for name, found in context.measured.items()}
    if not measured:
        return absent_table(key, title, "no answers are kept beside these records, so only their accuracy is known.")
    boards = {name: leaderboard(found) for name, found in measured.items()}
    first = next(iter(boards.values()))
    order = [placing.method for placing in first.ranked + first.reference_points]
    means = {
        name: {placing.method: placing.mean for placing in board.ranked + board.reference_points}
        for name, board in boards.items()
    }
    free = len(first.ranked)
    best = set()
    for j, (name, found) in enumerate(measured.items(), start=1):
        column = np.array([means[name][m] for m in order[:free]])
        if name != NOISE and np.isfinite(column).any():
            best.add((int(np.flatnonzero(column == best_of(found.metric, column))[0]), j))
    rows = [
        (panel.titles[m], *(written(found.metric, [means[name][m]])[0] for name, found in measured.items()))
        for m in order
    ]
    return Table(
        key=key,
        title=title,
        columns=("method", *(named(found.metric) for found in measured.values())),
        rows=tuple(rows),
        caption=sentences(
            f"Means over the {first.counted} cells of tier {focus(panel).tier} with all K, G = {first.datasets} "
            "datasets; probabilities as each head gives them. NLL, Brier score, ECE, selective risk: less is better. "
            f"ECE has {BINS} bins of equal mass and is biased upwards: the column beside it bounds what a head without "
            "any calibration error would show. Intervals of one metric: `kshot report --metric`.",
            cut_short(primary(panel)),
            left_out(panel, primary(panel)),
            provenance(panel),
        ),
        rule=free,
        best=frozenset(best),
    )
