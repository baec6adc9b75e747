"""Tables from records with known effects, recomputed in plain Python."""

import numpy as np
import pyarrow as pa
import pytest

from kshot.errors import StudyError
from kshot.report.tables import all_tables, headline_table, leaderboard_table
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.panel import panel

SEES = {"good": ["support", "text"], "bad": ["text"], "oracle_lambda": ["support", "test", "text"]}


def records(datasets=("a", "b", "c"), shots=(1, 2, 4), seeds=(0, 1), drop=(), **extra):
    rng = np.random.default_rng(0)
    rows = []
    for d_index, dataset in enumerate(datasets):
        for k in shots:
            if (dataset, k) in drop:
                continue
            for seed in seeds:
                base = 0.4 + 0.1 * d_index + 0.02 * k + 0.01 * rng.normal()
                for method, gain in (("bad", 0.0), ("good", 0.1 + 0.02 * d_index), ("oracle_lambda", 0.05)):
                    undefined = method == "good" and k == 1
                    rows.append(
                        {
                            "study": "s",
                            "study_hash": "h",
                            "dataset": dataset,
                            "backbone": "x",
                            "tier": "photo",
                            "shots": k,
                            "seed": seed,
                            "method": method,
                            "title": method.title(),
                            "sees": SEES[method],
                            "accuracy": None if undefined else base + gain,
                            "simulated": False,
                        }
                        | extra
                    )
    return rows


def table(rows):
    return pa.Table.from_pylist(rows)


def mean(rows, method, k):
    values = [r["accuracy"] for r in rows if r["method"] == method and r["shots"] == k]
    return 100 * sum(values) / len(values)


def test_means_by_shots_and_ranking():
    rows = records()
    board = leaderboard(panel(table(rows)))
    assert [s.method for s in board.ranked] == ["good", "bad"]
    assert [s.method for s in board.reference_points] == ["oracle_lambda"]
    good = board.ranked[0]
    assert np.isnan(good.by_shots[1])
    assert good.by_shots[4] == pytest.approx(mean(rows, "good", 4))
    assert good.mean == pytest.approx((mean(rows, "good", 2) + mean(rows, "good", 4)) / 2)
    assert (board.cells, board.combinations, board.datasets) == (18, 3, 3)


def test_paired_differences_cancel_what_cells_share():
    found = paired(panel(table(records())), "good", "oracle_lambda")
    assert found.mean == pytest.approx(100 * np.mean([0.05, 0.07, 0.09]))
    assert found.n == 12
    assert found.low < found.mean < found.high


def test_combination_guard_drops_what_is_absent_at_some_k():
    rows = records(drop={("c", 4)})
    board = leaderboard(panel(table(rows)))
    assert board.datasets == 2
    kept = [r for r in rows if r["dataset"] != "c"]
    assert board.ranked[1].by_shots[1] == pytest.approx(mean(kept, "bad", 1))


def test_order_of_rows_does_not_matter():
    rows = records()
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    for one, two in zip(all_tables(panel(table(rows))), all_tables(panel(table(shuffled))), strict=True):
        assert one == two


def test_reference_points_stand_below_the_rule_and_are_never_headline_rows():
    found = panel(table(records()))
    shown = leaderboard_table(found)
    assert shown.rule == 2
    assert shown.rows[-1][0] == "Oracle_Lambda"
    assert {row[0] for row in headline_table(found).rows} == {"Good", "Bad"}


def test_one_dataset_has_no_interval_and_says_so():
    found = panel(table(records(datasets=("a",))))
    assert "[no interval]" in headline_table(found).rows[0][1]


def test_without_the_oracle_the_table_says_why_it_is_empty():
    rows = [row for row in records() if row["method"] != "oracle_lambda"]
    assert "does not run oracle_lambda" in headline_table(panel(table(rows))).caption


def test_mixed_studies_and_empty_tables_are_refused():
    mixed = records() + records(study_hash="other")
    with pytest.raises(StudyError, match="different studies: s h, s other"):
        panel(table(mixed))
    with pytest.raises(StudyError, match="no records"):
        panel(table(records()).slice(0, 0))


def test_names_with_markup_are_inert():
    rows = [row | {"title": "<img src=x onerror=alert(1)> [bold]x[/bold] a|b"} for row in records()]
    shown = leaderboard_table(panel(table(rows)))
    assert "<img" not in shown.html()
    assert "&lt;img" in shown.html()
    assert "a\\|b" in shown.markdown()
    from rich.console import Console

    console = Console(width=300)
    with console.capture() as capture:
        console.print(shown.rich())
    assert "[bold]x[/bold]" in capture.get()
