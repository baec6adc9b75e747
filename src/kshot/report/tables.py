"""The tables of a report, built from a panel."""

import numpy as np

from kshot.report.table import Table, interval, number
from kshot.stats.leaderboard import Leaderboard, Standing, leaderboard, paired
from kshot.stats.panel import Panel

ORACLE = "oracle_lambda"
INTERVAL_METHOD = (
    "Differences are paired within cells; 95 % Student-t intervals on the cluster-bootstrap standard error over "
    "datasets (10,000 resamples)."
)


def all_tables(panel: Panel) -> list[Table]:
    return [leaderboard_table(panel), headline_table(panel)]


def leaderboard_table(panel: Panel) -> Table:
    """Mean accuracy by shots with the combination guard; reference points below the rule."""
    board = leaderboard(panel)
    rows = [_leaderboard_row(panel, board, standing) for standing in board.ranked + board.reference_points]
    return Table(
        title="Leaderboard: mean accuracy (%) by shots",
        columns=("method", *(f"K={k}" for k in board.shots), "mean K≥2", "behind the leader, K≥2"),
        rows=tuple(rows),
        caption=(
            f"{board.cells} cells, {board.combinations} dataset × backbone × tier combinations present at every "
            f"K, G = {board.datasets} datasets. {INTERVAL_METHOD} Below the rule: reference points that look at "
            f"labels or pictures a user does not have. {_provenance(panel)}"
        ),
        rule=len(board.ranked),
    )


def headline_table(panel: Panel) -> Table:
    """Every validation-free method against the ratio tuned on the test set."""
    title = "Against the oracle ratio (percentage points)"
    if ORACLE not in panel.methods:
        return Table(
            title, ("method",), (), f"Missing: the study does not run {ORACLE}. {_provenance(panel)}"
        )
    late = panel.where(panel.shots >= 4)
    rows = []
    for method in _by_mean_difference(panel):
        both, after = paired(panel, method, ORACLE), paired(late, method, ORACLE)
        rows.append((panel.titles[method], interval(both), str(both.n), interval(after), str(after.n)))
    return Table(
        title=title,
        columns=("method", "all K", "n", "K≥4", "n"),
        rows=tuple(rows),
        caption=(
            f"Method minus oracle ratio; n counts cells where both exist, G = {len(np.unique(panel.dataset))} "
            f"datasets. {INTERVAL_METHOD} {_provenance(panel)}"
        ),
    )


def _leaderboard_row(panel: Panel, board: Leaderboard, standing: Standing) -> tuple[str, ...]:
    cells = (number(standing.by_shots[k]) for k in board.shots)
    behind = "leader" if standing is board.ranked[0] else interval(standing.behind_leader)
    return (panel.titles[standing.method], *cells, number(standing.mean), behind)


def _by_mean_difference(panel: Panel) -> list[str]:
    free = [m for m in panel.methods if m not in panel.reference_points]
    differences = {m: paired(panel, m, ORACLE).mean for m in free}
    return sorted(free, key=lambda m: -np.nan_to_num(differences[m], nan=-1e9))


def _provenance(panel: Panel) -> str:
    simulated = " SIMULATED features, no pictures." if panel.simulated else ""
    return f"Study {panel.study}, hash {panel.study_hash}.{simulated}"
