"""Rankings: by shots, by dataset, by metric, and against the oracle ratio."""

from dataclasses import replace

import numpy as np

from kshot.report.context import Context
from kshot.report.notes import (
    BESIDE,
    cells_in_words,
    cut_short,
    datasets_in_words,
    incomplete,
    intervals,
    leak_words,
    left_out,
    missing,
    turned_over,
    where,
    without_pool,
)
from kshot.report.slices import ORACLE, ZERO_SHOT, focus, primary, single
from kshot.report.table import (
    Number,
    Table,
    TableCell,
    best_cells,
    content,
    count,
    interval,
    metric_cells,
    metric_name,
    second_cells,
)
from kshot.stats.bootstrap import simultaneous
from kshot.stats.leaderboard import Leaderboard, Placing, best_first, counting, leaderboard, paired_with, side_by_side
from kshot.stats.metrics import ACCURACY, BINS, METRICS, Metric
from kshot.stats.panel import Panel

OF_THESE = "all K, on these datasets"
TIED, TURNED_OVER = " ≈", " ‡"
# The largest ECE that a calibrated head would show: none of its values is marked as best.
NOISE = "ece_noise"


def leaderboard_table(panel: Panel, context: Context) -> Table:
    """Mean accuracy by shots with the combination guard; reference points below the rule."""
    shown = primary(panel)
    board = leaderboard(shown)
    placings = board.ranked + board.reference_points
    turned = turned_over(panel)
    rows = []
    for placing in placings:
        title, *cells = _row(panel, board, placing)
        mark = TURNED_OVER if placing.method in turned else ""
        rows.append((f"{title}{mark}", *cells, *_behind(panel.metric, board, placing)))
    means = [np.array([p.by_shots[k] for p in board.ranked]) for k in board.shots]
    means.append(np.array([p.mean for p in board.ranked]))
    named = (_shot_columns(board)[-1], *_distance_columns(board))
    guarded = shown.where(shown.present_at_every_shot_count())
    holes = np.isnan([[*placing.by_shots.values(), placing.mean] for placing in placings]).any()
    return content(
        ("method", *_shot_columns(board), *_distance_columns(board)),
        rows,
        [
            f"{board.cells} cells of tier {focus(panel).tier}: {board.combinations} pairs of dataset and backbone "
            f"that are there at every K, in {datasets_in_words(board.datasets)}.",
            cut_short(shown),
            left_out(panel, shown),
            *_interval_notes(panel.metric, board, guarded),
            "–: the method does not exist in every cell of the column." if holes else "",
            "Below the rule: reference points that look at labels or pictures a user does not have."
            if board.reference_points
            else "",
            f"{TURNED_OVER.strip()}: in some cells its repulsion turned classes over; its mean is not to be trusted."
            if turned
            else "",
            *leak_words({p.method: context.leaks[p.method] for p in placings if p.method in context.leaks}),
            without_pool(shown),
            incomplete(counting(guarded), [placing.method for placing in placings]),
        ],
        rule=len(board.ranked),
        best=best_cells(panel.metric, means),
        second=second_cells(panel.metric, means),
        names=dict(zip(named, ("mean", "behind", "here"), strict=False)),
    )


def transductive(panel: Panel, context: Context) -> Table | str:
    """Heads that saw all test pictures at once, in a table of their own: no other head may do that."""
    shown = primary(panel)
    board = leaderboard(shown)
    if not board.transductive:
        return "no transductive method in these records."
    guarded = counting(shown.where(shown.present_at_every_shot_count()))
    gains = side_by_side(guarded, [placing.method for placing in board.transductive], ZERO_SHOT)
    return content(
        ("method", *_shot_columns(board), f"minus zero-shot, {board.counted}"),
        [(*_row(panel, board, p), interval(gains[p.method])) for p in board.transductive],
        [
            "They see all test pictures without labels, and a picture's prediction depends on the others; so they are "
            "not ranked.",
            *leak_words({p.method: context.leaks[p.method] for p in board.transductive if p.method in context.leaks}),
            f"{board.cells} cells of tier {focus(panel).tier}, {datasets_in_words(board.datasets)}.",
            cut_short(shown),
            left_out(panel, shown),
            intervals(guarded),
        ],
    )


def metrics(panel: Panel, context: Context) -> Table | str:
    """All metrics side by side, over the same cells."""
    measured = {name: primary(found) for name, found in context.measured.items() if name in METRICS}
    if not measured:
        return "no answers are kept beside these records, so only their accuracy is known."
    boards = {name: leaderboard(found) for name, found in measured.items()}
    first = next(iter(boards.values()))
    order = [placing.method for placing in first.ranked + first.reference_points]
    columns, best = [], set()
    for j, (name, board) in enumerate(boards.items(), start=1):
        means = {placing.method: placing.mean for placing in board.ranked + board.reference_points}
        metric, free = measured[name].metric, np.array([means[m] for m in order[: len(first.ranked)]])
        columns.append(metric_cells(metric, [means[m] for m in order]))
        if name != NOISE:
            best |= {(i, j) for i, _ in best_cells(metric, [free])}
    return content(
        ("method", *(metric_name(found.metric) for found in measured.values())),
        [(panel.titles[m], *cells) for m, *cells in zip(order, *columns, strict=True)],
        [
            f"Means over the {first.counted} cells of tier {focus(panel).tier} with all K, "
            f"{datasets_in_words(first.datasets)}; probabilities as each head gives them. NLL, Brier score, ECE, "
            f"selective risk: less is better. ECE has {BINS} bins of equal mass and is biased upwards: the column "
            "beside it bounds what a head without any calibration error would show. Intervals of one metric: "
            "`kshot report --metric`.",
            cut_short(primary(panel)),
            left_out(panel, primary(panel)),
        ],
        rule=len(first.ranked),
        best=best,
    )


def headline(panel: Panel, context: Context) -> Table | str:
    """Every validation-free method against the ratio tuned on the test set; bold where the interval is above 0.

    `all K` counts whatever cells a method has, as the paper does; the other columns have the same cells in all rows.
    """
    shown = primary(panel)
    if ORACLE not in panel.methods or not len(shown):
        return missing(panel, [ORACLE]) or "no cell of these records has text."
    free = shown.free_methods()
    overall = paired_with(shown, free, ORACLE)
    later, late = (shown.where((shown.shots >= k) & np.isfinite(shown.column(ORACLE))) for k in (2, 4))
    same = {name: cells for name, cells in {"K≥2": later, "K≥4": late}.items() if len(cells)}
    slices = {"all K": overall} | {name: side_by_side(cells, free, ORACLE) for name, cells in same.items()}
    order = sorted(free, key=lambda m: (-np.nan_to_num(overall[m].mean, nan=-1e9), m))
    columns = ["method", *slices, "n, all K"]
    rows = [[panel.titles[m], *(interval(found[m]) for found in slices.values()), count(overall[m].n)] for m in order]
    if any(found.beside for found in overall.values()):
        columns.append(OF_THESE)
        rows = [[*row, interval(overall[m].beside)] for row, m in zip(rows, order, strict=True)]
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
    sizes = " and ".join(str(len(cells)) for cells in same.values())
    same_cells = f"; {' and '.join(same)}: the same {sizes} cells in every row" if same else ""
    return content(
        columns,
        rows,
        [
            f"Method minus oracle ratio, tier {focus(panel).tier}, {cells_in_words(shown)}. All K: every cell that a "
            f"method has, so rows differ in n{same_cells}. Bold: the interval lies above zero.",
            left_out(panel, shown),
            intervals(shown),
            BESIDE.format(marked="") if OF_THESE in columns else "",
            note,
            without_pool(shown),
            incomplete(later, free),
        ],
        best=above,
    )


def per_dataset(panel: Panel, context: Context) -> Table:
    """Accuracy per dataset at the most shots (16 where there are), seed means, best free method in bold."""
    shown, focused = single(panel), focus(panel)
    shots = 16 if 16 in shown.shots else int(shown.shots.max())
    at = shown.where(shown.shots == shots)
    names = at.names("dataset")
    inductive = [m for m in shown.methods if m not in shown.transductive]
    means = {m: np.array([at.column(m)[at.dataset == name].mean() for name in names]) for m in inductive}
    free = set(shown.free_methods())
    order = sorted(means, key=lambda m: (m not in free, best_first(panel.metric, means[m].mean())))
    values = np.array([means[m] for m in order]).reshape(len(order), len(names))
    if len(names) > 1:
        values = np.column_stack([values, values.mean(axis=1)])
    without = sorted(set(shown.names("dataset")) - set(names))
    return content(
        ("method", *names, *(["mean"] if len(names) > 1 else [])),
        [(panel.titles[m], *metric_cells(panel.metric, row)) for m, row in zip(order, values, strict=True)],
        [
            f"Tier {focused.tier}, means over {len(np.unique(at.seed))} seeds; {cells_in_words(at)}; no interval: the "
            "columns are the clusters. Bold: best validation-free method. Below the rule: reference points.",
            f"Without cells at K={shots}: {', '.join(without)}." if without else "",
            left_out(panel, shown, focused.backbone),
        ],
        rule=len(free),
        best=best_cells(panel.metric, values[: len(free)].T, ties=True),
        second=second_cells(panel.metric, values[: len(free)].T, ties=True),
        title=f"{metric_name(panel.metric, capital=True)} per dataset at K={shots}, {focused.backbone}",
        names={name: name for name in names},
    )


def _shot_columns(board: Leaderboard) -> list[str]:
    return [*(f"K={k}" for k in board.shots), f"mean {board.counted}"]


def _row(panel: Panel, board: Leaderboard, placing: Placing) -> tuple[TableCell, ...]:
    cells = metric_cells(panel.metric, [*(placing.by_shots[k] for k in board.shots), placing.mean])
    return (panel.titles[placing.method], *cells)


def _distance_columns(board: Leaderboard) -> list[str]:
    """One, or with three to five datasets a second one for the interval on these."""
    here = where(board.datasets)
    named = [f"behind the leader{' ' if here else ''}{here}, {board.counted}"]
    return [*named, f"on these {board.datasets} datasets"] if _two_intervals(board) else named


def _two_intervals(board: Leaderboard) -> bool:
    return any(placing.behind_leader and placing.behind_leader.beside for placing in board.ranked)


def _behind(metric: Metric, board: Leaderboard, placing: Placing) -> list[Number]:
    """The distance to the leader with the interval of each column, ≈ where that holds zero."""
    both = _two_intervals(board)
    if board.ranked and placing is board.ranked[0] and placing.mean == placing.mean:
        return [Number(float("nan"), G=board.datasets, instead="leader")] * (1 + both)
    behind, digits = placing.behind_leader, metric.digits + (metric.scale == 100)
    estimates = [behind, *([behind and behind.beside] if both else [])]
    marks = [TIED if placing in board.ranked and one and one.reaches_zero else "" for one in estimates]
    return [replace(interval(one, digits), mark=mark) for one, mark in zip(estimates, marks, strict=True)]


def _interval_notes(metric: Metric, board: Leaderboard, shown: Panel) -> list[str]:
    here = where(board.datasets)
    if here and metric is not ACCURACY:
        return ["No intervals: fewer than three datasets, and those over draws and pictures exist for accuracy only."]
    if here:
        return [intervals(shown), f"≈: not told apart from the leader {here}, because that interval holds zero."]
    over = f"over {board.datasets} datasets"
    notes = [intervals(shown), f"≈: not told apart from the leader, because the interval {over} holds zero."]
    if _two_intervals(board):
        notes.append(BESIDE.format(marked=", with its own ≈"))
    return notes
