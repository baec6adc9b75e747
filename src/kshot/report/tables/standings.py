"""Who stands where: by shots, by dataset, and against the oracle ratio."""

import numpy as np

from kshot.report.context import Context
from kshot.report.focus import (
    INTERVALS,
    ORACLE,
    ZERO_SHOT,
    counted,
    cut_short,
    focus,
    incomplete,
    left_out,
    missing,
    primary,
    provenance,
    sentences,
    single,
    turned_over,
    without_pool,
)
from kshot.report.numbers import Number, best_of, count, interval, marked, named, written
from kshot.report.table import Table, TableCell, absent_table
from kshot.stats.leaderboard import Leaderboard, Placing, best_first, counting, leaderboard, paired_with, side_by_side
from kshot.stats.metrics import Metric
from kshot.stats.multiplicity import simultaneous
from kshot.stats.panel import Panel

TIED, TURNED_OVER = " ≈", " ‡"
NO_TIES = "One dataset gives no interval over datasets, so ties cannot be told."


def leaderboard_table(panel: Panel, context: Context) -> Table:
    """Mean accuracy by shots with the combination guard; reference points below the rule."""
    shown = primary(panel)
    board = leaderboard(shown)
    turned = turned_over(panel)
    rows = [
        _leaderboard_row(panel, board, placing, TURNED_OVER if placing.method in turned else "")
        for placing in board.ranked + board.reference_points
    ]
    return Table(
        key="leaderboard",
        title=f"Leaderboard: mean {named(panel.metric)} by shots",
        columns=(
            "method",
            *(f"K={k}" for k in board.shots),
            f"mean {board.counted}",
            f"behind the leader, {board.counted}",
        ),
        rows=tuple(rows),
        caption=sentences(
            f"n = {board.cells} cells of tier {focus(panel).tier}, {board.combinations} dataset × backbone "
            f"combinations present at every K, G = {board.datasets} datasets.",
            cut_short(shown),
            left_out(panel, shown),
            INTERVALS,
            f"≈: not told apart from the leader, because the interval over {board.datasets} datasets reaches zero."
            if board.datasets > 1
            else NO_TIES,
            "–: the method does not exist in every cell of the column. Below the rule: reference points that look at "
            "labels or pictures a user does not have.",
            f"{TURNED_OVER.strip()}: in some cells its repulsion turned classes over; its mean is not to be trusted."
            if turned
            else "",
            without_pool(shown),
            _without_mean(shown, board),
            provenance(panel),
        ),
        rule=len(board.ranked),
        best=_best_by_column(panel.metric, board),
    )


def transductive_table(panel: Panel, context: Context) -> Table:
    """Heads that saw all test pictures at once, in a table of their own: no other head may do that."""
    key, title = "transductive", f"Transductive heads: mean {named(panel.metric)} by shots"
    shown = primary(panel)
    board = leaderboard(shown)
    if not board.transductive:
        return absent_table(key, title, "no transductive method in these records.")
    rows = [_leaderboard_row(panel, board, placing)[:-1] for placing in board.transductive]
    guarded = counting(shown.where(shown.present_at_every_shot_count()))
    gains = side_by_side(guarded, [placing.method for placing in board.transductive], ZERO_SHOT)
    return Table(
        key=key,
        title=title,
        columns=(
            "method",
            *(f"K={k}" for k in board.shots),
            f"mean {board.counted}",
            f"minus zero-shot, {board.counted}",
        ),
        rows=tuple((*row, interval(gain)) for row, gain in zip(rows, gains.values(), strict=True)),
        caption=sentences(
            "They see all test pictures without labels, and a picture's prediction depends on the others; so they are "
            "not ranked.",
            f"n = {board.cells} cells of tier {focus(panel).tier}, G = {board.datasets} datasets.",
            cut_short(shown),
            left_out(panel, shown),
            INTERVALS,
            provenance(panel),
        ),
    )


def headline_table(panel: Panel, context: Context) -> Table:
    """Every validation-free method against the ratio tuned on the test set; bold where the interval is above 0.

    `all K` counts whatever cells a method has, as the paper does; the other columns have the same cells in all rows.
    """
    key, title = "headline", "Against the oracle ratio (percentage points)"
    shown = primary(panel)
    if ORACLE not in panel.methods or not len(shown.shots):
        return absent_table(key, title, missing(panel, [ORACLE]) or "no cell of these records has text.")
    free = shown.free_methods()
    overall = paired_with(shown, free, ORACLE)
    later, late = (shown.where((shown.shots >= k) & np.isfinite(shown.column(ORACLE))) for k in (2, 4))
    same = {name: cells for name, cells in {"K≥2": later, "K≥4": late}.items() if len(cells.shots)}
    slices = {"all K": overall} | {name: side_by_side(cells, free, ORACLE) for name, cells in same.items()}
    order = sorted(free, key=lambda m: (-np.nan_to_num(overall[m].mean, nan=-1e9), m))
    columns = ["method", *slices, "n, all K"]
    rows = [[panel.titles[m], *(interval(found[m]) for found in slices.values()), count(overall[m].n)] for m in order]
    note = "No correction for the number of intervals."
    if context.corrected:
        wider = {name: simultaneous(found) for name, found in slices.items()}
        rows = [[*row, *(interval(found[m]) for found in wider.values())] for row, m in zip(rows, order, strict=True)]
        columns += [f"{name}, simultaneous" for name in wider]
        note = f"Simultaneous: Bonferroni over the {len(order)} rows, beside the plain interval."
    above = {
        (i, j)
        for i, m in enumerate(order)
        for j, found in enumerate(slices.values(), start=1)
        if (low := found[m].low) is not None and low > 0
    }
    return Table(
        key=key,
        title=title,
        columns=tuple(columns),
        rows=tuple(map(tuple, rows)),
        caption=sentences(
            f"Method minus oracle ratio, tier {focus(panel).tier}, {counted(shown)}. All K: every cell that a method "
            f"has, so rows differ in n{_same_cells(same)}. Bold: the interval lies above zero.",
            left_out(panel, shown),
            INTERVALS,
            note,
            without_pool(shown),
            incomplete(later, free),
            provenance(panel),
        ),
        best=frozenset(above),
    )


def per_dataset_table(panel: Panel, context: Context) -> Table:
    """Accuracy per dataset at the most shots (16 where there are), seed means, best free method in bold."""
    shown = single(panel)
    focused = focus(panel)
    shots = 16 if 16 in shown.shots else int(shown.shots.max())
    at = shown.where(shown.shots == shots)
    names = sorted(set(at.dataset.tolist()))
    inductive = [m for m in shown.methods if m not in shown.transductive]
    means = {m: np.array([_mean(at, name, m) for name in names]) for m in inductive}
    free = set(shown.free_methods())
    order = sorted(means, key=lambda m: (m not in free, best_first(panel.metric, means[m].mean())))
    values = np.array([means[m] for m in order]).reshape(len(order), len(names))
    if len(names) > 1:
        values = np.column_stack([values, values.mean(axis=1)])
    without = sorted(set(shown.dataset.tolist()) - set(names))
    return Table(
        key="per_dataset",
        title=f"{named(panel.metric, True)} per dataset at K={shots}, {focused.backbone}",
        columns=("method", *names, *(["mean"] if len(names) > 1 else [])),
        rows=tuple((panel.titles[m], *written(panel.metric, row)) for m, row in zip(order, values, strict=True)),
        caption=sentences(
            f"Tier {focused.tier}, means over {len(np.unique(at.seed))} seeds; {counted(at)}; no interval: the columns "
            "are the clusters. Bold: best validation-free method. Below the rule: reference points.",
            f"Without cells at K={shots}: {', '.join(without)}." if without else "",
            left_out(panel, shown, focused.backbone),
            provenance(panel),
        ),
        rule=len(free),
        best=frozenset(
            (int(i), 1 + j)
            for j, column in enumerate(values[: len(free)].T)
            if np.isfinite(column).any()
            for i in np.flatnonzero(column == best_of(panel.metric, column))
        ),
    )


def _same_cells(slices: dict[str, Panel]) -> str:
    if not slices:
        return ""
    sizes = " and ".join(str(len(cells.shots)) for cells in slices.values())
    return f"; {' and '.join(slices)}: the same {sizes} cells in every row"


def _mean(panel: Panel, dataset: str, method: str) -> float:
    return float(panel.column(method)[panel.dataset == dataset].mean())


def _without_mean(shown: Panel, board: Leaderboard) -> str:
    counted = counting(shown.where(shown.present_at_every_shot_count()))
    return incomplete(counted, (placing.method for placing in board.ranked + board.reference_points))


def _leaderboard_row(panel: Panel, board: Leaderboard, placing: Placing, warning: str = "") -> tuple[TableCell, ...]:
    cells = written(panel.metric, [placing.by_shots[k] for k in board.shots] + [placing.mean])
    return (panel.titles[placing.method] + warning, *cells, _behind(panel.metric, board, placing))


def _behind(metric: Metric, board: Leaderboard, placing: Placing) -> Number:
    if board.ranked and placing is board.ranked[0] and placing.mean == placing.mean:
        return Number(float("nan"), G=board.datasets, instead="leader")
    shown = interval(placing.behind_leader, metric.digits + (metric.scale == 100))
    return marked(shown, TIED) if placing.tied and placing in board.ranked else shown


def _best_by_column(metric: Metric, board: Leaderboard) -> frozenset[tuple[int, int]]:
    """The best validation-free mean of every column."""
    columns = [[s.by_shots[k] for s in board.ranked] for k in board.shots] + [[s.mean for s in board.ranked]]
    return frozenset(
        (values.index(best_of(metric, np.array(values))), 1 + j)
        for j, values in enumerate(columns)
        if np.isfinite(values).any()
    )
