"""The pivot, the guard and the refusals."""

import json

import numpy as np
import pytest

from kshot.errors import StudyError
from kshot.stats.leaderboard import leaderboard, paired
from kshot.stats.panel import panel
from kshot.stats.selected import ratio_curve, ratio_grid
from synthetic_records import as_table, synthetic_rows, synthetic_table


def test_every_record_lands_in_its_place_whatever_the_order():
    rows = synthetic_rows()
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    found = panel(as_table(shuffled))
    axes = (found.dataset, found.backbone, found.tier, found.shots, found.seed)
    where = {key: i for i, key in enumerate(zip(*axes, strict=True))}
    for row in rows:
        index = where[row["dataset"], row["backbone"], row["tier"], row["shots"], row["seed"]]
        value = found.column(row["method"])[index]
        if row["accuracy"] is None:
            assert np.isnan(value)
        else:
            assert value == 100 * row["accuracy"]
    assert len(where) == len(found.shots) == len(rows) // 7


def test_holes_become_nan_and_absent_methods_a_column_of_nan():
    rows = [r for r in synthetic_rows() if not (r["method"] == "clap" and r["dataset"] == "beta")]
    found = panel(as_table(rows))
    assert np.isnan(found.column("clap")[found.dataset == "beta"]).all()
    assert np.isfinite(found.column("clap")[found.dataset == "alpha"]).all()
    assert np.isnan(found.column("never_heard_of")).all()


@pytest.mark.parametrize("known", [True, False])
def test_text_shows_in_d2_or_where_that_is_unknown_in_the_methods_that_read_it(known):
    rows = synthetic_rows(("alpha",), text_free=("RN50",))
    rows = [row if known else row | {"d2": None} for row in rows]
    found = panel(as_table(rows))
    assert np.array_equal(found.has_text, found.backbone != "RN50")
    assert set(found.with_text().backbone) == {"ViT-B-16"}


def test_cells_whose_methods_read_no_text_have_text_where_d2_is_known():
    found = panel(as_table(synthetic_rows(("alpha",), methods=("logistic_probe",), text_free=("RN50",))))
    assert np.array_equal(found.has_text, found.backbone != "RN50")


def test_a_panel_gives_the_columns_and_the_records_of_its_cells():
    rows = synthetic_rows(("beta", "alpha"), ("RN50",), ("dataset",), (2,), (0,), ("clap", "oracle_lambda"))
    found = panel(as_table([row for row in rows if (row["dataset"], row["method"]) != ("beta", "clap")]))
    assert found.names("dataset") == ["alpha", "beta"]
    assert found.cell_keys(("dataset", "shots")) == [("alpha", 2), ("beta", 2)]
    assert found.value.shape == found.fit_seconds.shape == (2, 2)
    oracle = {row["dataset"]: json.loads(row["selected"]) for row in rows if row["method"] == "oracle_lambda"}
    assert found.selected("oracle_lambda") == [oracle["alpha"], oracle["beta"]]
    assert found.recorded("clap", "status") == ["ok", None]
    assert found.recorded("never", "status") == [None, None]
    assert found.selected("clap")[1] == {}
    with pytest.raises(AttributeError, match="colour"):
        _ = found.colour


def test_precisions_are_not_mixed():
    rows = synthetic_rows()
    with pytest.raises(StudyError, match="different precisions: float32, float64"):
        panel(as_table(rows + [row | {"dtype": "float64", "dataset": "new"} for row in rows[:7]]))


def test_the_digest_of_inputs_moves_with_the_keys_alone():
    rows = synthetic_rows()
    digest = panel(as_table(rows)).origin.inputs
    assert panel(as_table([row | {"study": "renamed", "accuracy": 0.5} for row in rows[::-1]])).origin.inputs == digest
    assert panel(as_table([rows[0] | {"key": "another"}, *rows[1:]])).origin.inputs != digest


def test_zero_records_and_doubled_records_are_refused():
    with pytest.raises(StudyError, match="no records"):
        panel(synthetic_table().slice(0, 0))
    rows = synthetic_rows()
    with pytest.raises(StudyError, match="two records for one cell"):
        panel(as_table(rows + rows[:1]))


def test_leaderboard_means_by_hand_and_guard():
    rows = [r for r in synthetic_rows(tiers=("dataset",)) if (r["dataset"], r["shots"]) != ("gamma", 16)]
    board = leaderboard(panel(as_table(rows)))
    kept = [r for r in rows if r["dataset"] != "gamma"]

    def mean(method, k):
        values = [r["accuracy"] for r in kept if r["method"] == method and r["shots"] == k]
        return 100 * sum(values) / len(values)

    assert (board.datasets, board.combinations, board.cells) == (3, 6, len(kept) // 7)
    for standing in board.ranked + board.reference_points:
        for k in (2, 4, 16):
            assert standing.by_shots[k] == pytest.approx(mean(standing.method, k))
        expected = (mean(standing.method, 2) + mean(standing.method, 4) + mean(standing.method, 16)) / 3
        assert standing.mean == pytest.approx(expected)
    assert np.isnan(next(s for s in board.ranked if s.method == "loo_blend").by_shots[1])
    assert [s.method for s in board.reference_points] == ["oracle_lambda"]
    assert [s.mean for s in board.ranked] == sorted((s.mean for s in board.ranked), reverse=True)


def test_a_tie_is_an_interval_that_reaches_zero():
    board = leaderboard(panel(synthetic_table(tiers=("dataset",))))
    for standing in board.ranked[1:]:
        assert standing.behind_leader.reaches_zero == (standing.behind_leader.low <= 0 <= standing.behind_leader.high)
    assert board.ranked[0].behind_leader is None
    assert any(s.behind_leader.excludes_zero for s in board.ranked[1:])


def test_paired_differences_cancel_what_cells_share():
    rows = synthetic_rows()
    for row in rows:
        if row["accuracy"] is not None:
            row["accuracy"] = 0.1 * row["shots"] / 16 + (0.05 if row["method"] == "clap" else 0.0)
    found = paired(panel(as_table(rows)), "clap", "oracle_lambda")
    assert found.mean == pytest.approx(5)
    assert found.high - found.low == pytest.approx(0, abs=1e-9)


def test_an_own_method_loses_its_address_unless_two_would_share_a_title():
    rows = synthetic_rows(("alpha",), ("RN50",), ("dataset",), (2,), (0,), ("clap", "lpp", "ncm", "zero_shot"))
    clap, lpp, ncm, zero_shot = rows
    clap.update(method="mine:A", title="Ridge (mine:A)")
    lpp.update(method="mine:B", title="Probe (mine:B)")
    ncm.update(method="other:B", title="Probe (other:B)")
    zero_shot.update(title="Text (zero_shot)")
    found = panel(as_table(rows)).titles
    assert [found[name] for name in ("mine:A", "mine:B", "other:B", "zero_shot")] == [
        "Ridge",
        "Probe (mine:B)",
        "Probe (other:B)",
        "Text (zero_shot)",
    ]


@pytest.mark.parametrize(("evidence", "name"), [("support", "loo_accuracy"), ("test", "accuracy"), ("val", "accuracy")])
def test_a_curve_over_the_ratio_goes_from_text_to_pictures(evidence, name):
    assert ratio_curve({"lambda": 0.5, name: [0.1, 0.2, 0.3]}, evidence) == [0.1, 0.2, 0.3]
    assert ratio_curve({"alpha": 0.5, name: [0.1, 0.2, 0.3]}, evidence) is None
    assert ratio_curve({"lambda": 0.5, name: "lost"}, evidence) is None
    assert ratio_curve({"lambda": 0.5}, evidence) is None
    assert ratio_grid(3).tolist() == [0.0, 0.5, 1.0]
