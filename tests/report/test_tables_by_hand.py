"""Tables of a few records whose figures are set, so that each cell of the table is known.

They kill the mutants that the larger tests let pass (tests/campaigns/mutation.py).
"""

import json
from itertools import product

import numpy as np
import pytest
from scipy import stats

from kshot.errors import StudyError
from kshot.report.context import Context, Gate, Probed
from kshot.report.table import interval
from kshot.report.tables import make_table
from kshot.report.tables.knob_atlas import knob_cells, surveys
from kshot.report.tables.stratum_probes import stratum_tables
from kshot.stats.leaderboard import paired
from kshot.stats.metrics import METRICS
from kshot.stats.panel import panel
from synthetic_records import as_table, synthetic_rows

DATASETS, SHOTS, SEEDS = ("alpha", "beta", "gamma"), (1, 2, 4), (0, 1)


def records(levels, datasets=DATASETS, backbones=("ViT-B-16",), tiers=("dataset",), shots=SHOTS, **options):
    """Rows whose accuracy in per cent is levels[method](row) or that number; None leaves a record undefined."""
    rows = synthetic_rows(datasets, backbones, tiers, shots, SEEDS, tuple(levels), **options)
    for row in rows:
        level = levels[row["method"]]
        value = level(row) if callable(level) else level
        row["accuracy"] = None if value is None else value / 100
        row["status"] = "undefined" if value is None else "ok"
    return rows


def table(key, rows, context=None):
    return make_table(key, panel(as_table(rows)), context)


def cells(line):
    return [str(cell) for cell in line]


def test_an_unknown_table_is_named_with_the_nearest():
    with pytest.raises(StudyError, match="leaderboard"):
        table("leaderbord", records({"clap": 50}))


def measured(rows, values):
    """Panels by metric; values[metric][method] in every cell."""
    made = panel(as_table(rows))
    return {"accuracy": made} | {
        name: made.by_metric(METRICS[name], np.array([by[row["method"]] for row in rows]))
        for name, by in values.items()
    }


def test_metrics_mark_the_best_free_head_and_never_the_noise():
    rows = records({"zero_shot": 40, "clap": 60, "lpp": 50, "oracle_lambda": 70})
    nll = {"zero_shot": 0.9, "clap": 0.8, "lpp": 0.7, "oracle_lambda": 0.1}
    noise = {"zero_shot": 0.01, "clap": 0.02, "lpp": 0.03, "oracle_lambda": 0.0}
    unknown = dict.fromkeys(nll, np.nan)
    context = Context(measured=measured(rows, {"nll": nll, "ece_noise": noise, "brier": unknown}))
    made = table("metrics", rows, context)
    assert made.columns[:2] == ("method", "accuracy (%)")
    assert [cells(line) for line in made.rows] == [
        ["CLAP", "60.0", "0.800", "2.0", "–"],
        ["LP++", "50.0", "0.700", "3.0", "–"],
        ["Zero-shot", "40.0", "0.900", "1.0", "–"],
        ["Oracle ratio", "70.0", "0.100", "0.0", "–"],
    ]
    assert made.rule == 3
    assert made.best == {(0, 1), (1, 2)}
    assert "K≥2 cells of tier dataset with all K, 3 datasets" in made.caption
    assert not table("metrics", rows).rows


def test_the_leaderboard_marks_ties_turned_classes_and_what_lacks_a_cell():
    def tied(row):
        return 60 + {"alpha": 3, "beta": -3, "gamma": -0.3}[row["dataset"]]

    def behind(row):
        return 50 + {"alpha": 0.1, "beta": 0.0, "gamma": -0.1}[row["dataset"]]

    rows = records(
        {"clap": 60, "lpp": tied, "zero_shot": behind, "loo_blend": lambda row: None if row["shots"] == 1 else 55}
        | {"js_blend": lambda row: 52 if row["dataset"] != "beta" else None, "oracle_lambda": 70}
    )
    for row in rows:
        row["selected"] = json.dumps({"turned_over": row["method"] == "zero_shot"})
    made = table("leaderboard", rows)
    lines = {line[0]: line for line in made.rows}
    assert list(lines) == ["CLAP", "LP++", "LOO blend", "Zero-shot ‡", "James–Stein blend", "Oracle ratio"]
    assert cells(lines["CLAP"])[1:] == ["60.0", "60.0", "60.0", "60.0", "leader"]
    assert str(lines["LP++"][-1]).endswith("≈")
    assert "≈" not in str(lines["Zero-shot ‡"][-1])
    assert cells(lines["LOO blend"])[1:5] == ["–", "55.0", "55.0", "55.0"]
    assert cells(lines["James–Stein blend"])[1:] == ["–"] * 5
    assert "≈" not in str(lines["Oracle ratio"][-1])
    assert (made.rule, made.best) == (5, {(0, 1), (0, 2), (0, 3), (0, 4)})
    assert "Left out" not in made.caption
    assert "James–Stein blend 4" in made.caption
    thin = [row for row in rows if (row["dataset"], row["shots"]) != ("gamma", 4)]
    caption = table("leaderboard", thin).caption
    assert "in 2 datasets" in caption
    assert "gamma with ViT-B-16 (without K=4)" in caption


def test_transductive_heads_stand_beside_zero_shot():
    rows = records({"zero_shot": 40, "clap": 60, "lpp": lambda row: 45 + row["shots"]})
    for row in rows:
        if row["method"] == "lpp":
            row["sees"] = ["queries", "support", "text"]
    (line,) = table("transductive", rows).rows
    assert cells(line) == ["LP++", "46.0", "47.0", "49.0", "48.0", "+8.00 [+8.00, +8.00]"]
    assert not table("transductive", records({"clap": 60})).rows


def test_per_dataset_takes_sixteen_shots_or_the_most_and_names_who_has_none():
    levels = {"zero_shot": 40, "clap": lambda row: 50 + len(row["dataset"]), "oracle_lambda": 70}
    rows = records(levels, shots=(2, 16, 32))
    made = table("per_dataset", rows)
    assert "K=16" in made.title
    assert cells(made.rows[0]) == ["CLAP", "55.0", "54.0", "55.0", "54.7"]
    assert made.best == {(0, 1), (0, 2), (0, 3), (0, 4)}
    assert made.rule == 2
    fewer = [row for row in rows if row["shots"] != 16 and (row["dataset"], row["shots"]) != ("beta", 32)]
    made = table("per_dataset", fewer)
    assert "K=32" in made.title
    assert made.columns == ("method", "alpha", "gamma", "mean")
    assert "Without cells at K=32: beta." in made.caption
    alone = table("per_dataset", [row for row in rows if row["dataset"] == "alpha"])
    assert alone.columns == ("method", "alpha")
    assert alone.best == {(0, 1)}


def test_the_headline_is_bold_where_the_interval_lies_above_zero():
    def wide(row):
        return 61 + {"alpha": 3, "beta": -3, "gamma": 0}[row["dataset"]]

    rows = records({"clap": 62, "lpp": wide, "zero_shot": 40, "oracle_lambda": 60})
    made = table("headline", rows)
    assert [line[0] for line in made.rows] == ["CLAP", "LP++", "Zero-shot"]
    assert made.best == {(0, 1), (0, 2), (0, 3)}
    assert cells(made.rows[2])[1:] == ["−20.00 [−20.00, −20.00]"] * 3 + ["18"]
    assert "the same 12 and 6 cells" in made.caption
    assert not table("headline", records({"clap": 62})).rows


def test_the_headline_is_bold_above_zero_only_and_ends_with_what_has_no_pair():
    """Half a point above is bold, equal is not; a method that shares no cell with the oracle stands last."""
    levels = {"clap": 60.5, "lpp": 60, "zero_shot": 40, "js_blend": lambda row: None, "oracle_lambda": 60}
    made = table("headline", records(levels))
    assert [line[0] for line in made.rows] == ["CLAP", "LP++", "Zero-shot", "James–Stein blend"]
    assert made.best == {(0, 1), (0, 2), (0, 3)}
    assert cells(made.rows[3])[1] == "–"


def several_datasets(count, **hits_of):
    """CLAP leads; hits are kept, so that intervals over draws and pictures exist."""
    names = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")[:count]
    levels = {"clap": 60, "lpp": lambda row: 55 + row["seed"], "oracle_lambda": 50}
    rows = synthetic_rows(names, ("ViT-B-16",), ("dataset",), (2, 4), (0, 1, 2), tuple(levels))
    for row in rows:
        level = levels[row["method"]]
        right = (level(row) if callable(level) else level) * 400 // 100
        row.update(accuracy=right / 400, n_correct=right, n_test=400, hits=hits(right, 400))
    return rows


@pytest.mark.parametrize("count", [2, 4, 6])
def test_few_datasets_have_a_second_interval_and_a_sentence_about_it(count):
    rows = several_datasets(count)
    found = paired(panel(as_table(rows)), "lpp", "clap")
    both = 3 <= count <= 5
    for key in ("leaderboard", "headline"):
        assert ("Beside it stands the one over draws" in table(key, rows).caption) is both
    last = cells(table("leaderboard", rows).rows[1])[-1]
    assert (found.beside is not None) is both
    assert last == str(interval(found.beside if both else found, 2))


def test_reruns_count_what_moved_over_the_shared_cells():
    base = records({"clap": 60, "lpp": 50, "zero_shot": 40})
    moved = {("alpha", 1): 2.0, ("beta", 2): -1.0}
    other = records({"clap": lambda row: 60 + moved.get((row["dataset"], row["shots"]), 0), "lpp": 50})
    other = [row | {"dtype": "float64"} for row in other if row["dataset"] != "gamma"]
    made = table("precision", base, Context(other_precision=panel(as_table(other))))
    lines = {line[0]: cells(line) for line in made.rows}
    assert lines.keys() == {"CLAP", "LP++"}
    # Two seeds of either; twelve shared cells.
    assert lines["CLAP"][1:5] == ["12", "8", "0.500", "2.00"]
    assert lines["CLAP"][5].startswith("+0.17")
    assert lines["LP++"][1:5] == ["12", "12", "0.000", "0.00"]
    assert "12 cells of 2 datasets that both have" in made.caption
    assert "Run the same grid with another dtype" in table("precision", base).caption


def test_augmented_views_are_compared_by_shots():
    base = records({"clap": 60, "lpp": 50})
    gain = {1: 3.0, 2: 2.0, 4: 1.0}
    views = json.dumps({"views": {"recipe": "tip", "count": 10}})
    # One method has no views, and another is in one of the studies only.
    viewed = records({"clap": lambda row: 60 + gain[row["shots"]], "lpp": 50, "loo_blend": 55})
    viewed = [row | {"recipe": "{}" if row["method"] == "lpp" else views} for row in viewed]
    (line,) = table("augmentation", viewed, Context(without_views=panel(as_table(base)))).rows
    assert cells(line)[:2] == ["CLAP", "tip × 10"]
    assert [float(cell) for cell in line[2:6]] == pytest.approx([2, 3, 2, 1])
    assert str(line[6]) == "18"
    for rows, context in ((viewed, None), (base, Context(without_views=panel(as_table(base))))):
        assert not table("augmentation", rows, context).rows


def hits(right, of=40):
    return np.packbits(np.arange(of) < right).tobytes()


def test_pictures_on_which_two_heads_disagree():
    rows = records({"clap": 60, "oracle_lambda": 50, "zero_shot": 40}, shots=(2,))
    right = {"clap": 30, "oracle_lambda": 10, "zero_shot": 29}
    for row in rows:
        row.update(n_test=40, hits=hits(right[row["method"]]))
    made = table("sample_level", rows)
    assert [cells(line) for line in made.rows] == [
        ["CLAP against Zero-shot", "6", "0", "0", "6", "25.0"],
        ["CLAP against Oracle ratio", "6", "6", "0", "0", "500.0"],
    ]
    third = [row | {"method": "lpp", "title": "LP++"} for row in rows if row["method"] == "zero_shot"]
    three = table("sample_level", rows + [row | {"accuracy": 0.3, "hits": hits(12)} for row in third])
    assert [line[0] for line in three.rows] == [
        *("CLAP against Zero-shot", "CLAP against Oracle ratio", "LP++ against Oracle ratio")
    ]
    nothing = table("sample_level", [row | {"hits": b""} for row in rows])
    assert not nothing.rows
    assert "no pair of methods has hits" in nothing.caption


def test_a_stratum_is_averaged_over_the_cells_that_hold_all_probes():
    rows = records({"clap": lambda row: 60 + row["seed"], "lpp": 50, "oracle_lambda": 58, "zero_shot": 40})
    rows = [row for row in rows if (row["method"], row["dataset"], row["shots"]) != ("lpp", "alpha", 1)]
    for row in rows:
        row["share"] = 0.75 if row["dataset"] == "alpha" else 0.5
    keys = {(name, "ViT-B-16", "dataset", 0, -1, "balanced"): 0.25 for name in DATASETS}
    spread = {(name, "ViT-B-16", "dataset", 16, -1, "balanced"): 0.03 for name in DATASETS}
    values = {"headroom.path/full": keys, "spread.d_eff": dict.fromkeys(keys, 7.0), "spread.measured SD": spread}
    probed = Probed(values)
    headroom = {("alpha", "ViT-B-16"): 1.5}
    made = table("strata", rows, Context(headroom=headroom, probed=probed))
    by_name = {line[0]: cells(line) for line in made.rows}
    assert by_name["alpha · ViT-B-16"][1:6] == ["40.0", "75.0", "1.50", "+2.50", "−8.00"]
    assert by_name["alpha · ViT-B-16"][6:12] == ["0.25", "7", "–", "–", "3.0e-02", "–"]
    assert (by_name["alpha · ViT-B-16"][-1], by_name["beta · ViT-B-16"][-1]) == ("4", "6")
    assert by_name["beta · ViT-B-16"][3] == "–"
    # Two seeds that differ by one point: their standard deviation is √½.
    assert "CLAP is above the oracle ratio in 3 of 3 strata (median seed-to-seed SD 0.71)" in made.caption
    assert "LP++ is above the oracle ratio in 0 of 3 strata (median seed-to-seed SD 0.00)" in made.caption


def test_one_seed_has_no_spread_and_headroom_is_that_of_clap():
    surplus = {"alpha": 1, "beta": 3, "gamma": 2}
    levels = {"clap": lambda row: 60 + surplus[row["dataset"]], "lpp": lambda row: 60 - surplus[row["dataset"]]}
    rows = records(levels | {"oracle_lambda": 58, "zero_shot": lambda row: 40 + len(row["dataset"])})
    rows = [row for row in rows if row["seed"] == 0]
    headroom = {(name, "ViT-B-16"): float(surplus[name]) for name in DATASETS}
    caption = table("strata", rows, Context(headroom=headroom)).caption
    assert "CLAP is above the oracle ratio in 3 of 3 strata." in caption
    assert "Headroom against CLAP's surplus: Spearman +1.00" in caption


def test_probes_are_pooled_over_datasets():
    rows = records({"clap": 60, "oracle_lambda": 58, "zero_shot": 40}, shots=(2, 4))
    for row in rows:
        row["share"] = {"alpha": 0.5, "beta": 0.6, "gamma": 0.7}[row["dataset"]]
    draws = list(product(DATASETS, ["ViT-B-16"], ["dataset"], (2, 4), SEEDS, ["balanced"]))
    strata = [(name, "ViT-B-16", "dataset", 0, -1, "balanced") for name in DATASETS]
    values = {
        "counterfactual.deficit": dict.fromkeys(draws, -4.0),
        "counterfactual.recovered": dict.fromkeys(draws, 3.0),
        "per_class.accuracy on split halves": dict.fromkeys(draws, 55.0),
        "spread.d_eff": dict(zip(strata, (10.0, 20.0, 60.0), strict=True)),
        "spread.measured SD": {
            (*key[:3], 2, -1, "balanced"): v for key, v in zip(strata, (0.1, 0.2, 0.4), strict=True)
        },
        "spread.predicted SD": {(*key[:3], 2, -1, "balanced"): 0.2 for key in strata},
        "headroom.headroom": dict(zip(strata, (1.0, 2.0, 3.0), strict=True)),
    }
    made = table("probes", rows, Context(probed=Probed(values)))
    found = {line[0]: line[1] for line in made.rows}
    assert float(found["class-independent share, %"]) == pytest.approx(60)
    assert float(found["share, ViT-B-16"]) == float(found["share, dataset"]) == pytest.approx(60)
    assert float(found["participation ratio"]) == pytest.approx(30)
    assert float(found["CLAP − one ratio per class on split halves"]) == pytest.approx(5)
    assert float(found["share of the damage recovered, %"]) == pytest.approx(75)
    assert float(found["SD of the James–Stein ratio, K=2"]) == pytest.approx(0.2)
    assert float(found["measured / predicted SD, K=2"]) == pytest.approx(1)
    assert "headroom against CLAP's surplus: Spearman" not in found, "a surplus that is the same everywhere"
    assert "kshot records probe" in table("probes", rows).caption


def test_headroom_of_three_strata_is_ranked_against_the_surplus():
    surplus = {"alpha": 1, "beta": 3, "gamma": 2}
    rows = records({"clap": lambda row: 60 + surplus[row["dataset"]], "oracle_lambda": 58, "zero_shot": 40})
    strata = [(name, "ViT-B-16", "dataset", 0, -1, "balanced") for name in DATASETS]
    values = {"headroom.headroom": dict(zip(strata, (1.0, 2.0, 3.0), strict=True))}
    found = {line[0]: line[1] for line in table("probes", rows, Context(probed=Probed(values))).rows}
    expected = stats.spearmanr([1, 2, 3], [1, 3, 2]).statistic
    assert float(found["headroom against CLAP's surplus: Spearman"]) == pytest.approx(expected)
    assert float(found["within backbones, median"]) == pytest.approx(expected)
    two = {"headroom.headroom": dict.fromkeys(strata[:2], 1.0)}
    assert not any("headroom against" in line[0] for line in table("probes", rows, Context(probed=Probed(two))).rows)


def test_costs_are_medians_per_fit_and_per_thousand_pictures():
    rows = records({"clap": 60, "lpp": lambda row: None if row["shots"] == 1 else 50})
    for row in rows:
        row.update(fit_seconds=float(row["shots"]), score_seconds=0.2, n_test=400)
    made = table("cost", rows)
    clap = made.rows[0]
    assert (clap[0], float(clap[1]), float(clap[2]), float(clap[4])) == ("CLAP", 3.0, 4.0, pytest.approx(0.5))
    assert cells(clap)[1:] == ["3 s", "4 s", "alpha · ViT-B-16, K=4", "500 ms", "18"]
    assert "the 12 cells where every method exists" in made.caption
    assert [str(line[-1]) for line in made.rows] == ["18", "12"]


SURVEY = {
    "grid": [0, 1, 2],
    "test": [0.5, 0.9, 0.4],
    "ensemble": 0.7,
    "fixed": 0.6,
    "loo": [0.1, 0.2, 0.9],
    "folds": [0.9, 0.8, 0.2],
}


def surveyed(*surveys_of_seeds, method="clap", sees=("support", "text")):
    seeds = range(len(surveys_of_seeds))
    rows = synthetic_rows(("alpha",), ("ViT-B-16",), ("dataset",), (2,), seeds, (method,))
    return [
        row | {"selected": json.dumps(survey), "sees": list(sees)}
        for row, survey in zip(rows, surveys_of_seeds, strict=True)
    ]


def test_what_each_selector_of_a_survey_scores():
    cells = knob_cells(panel(as_table(surveyed(SURVEY))), "clap")
    expected = {"fixed": 60, "loo": 40, "folds": 50, "ensemble": 70, "test": 90}
    assert {name: values.tolist() for name, values in cells.accuracy.items()} == {
        name: [pytest.approx(value)] for name, value in expected.items()
    }
    # The fixed value is the best of what needs no choice; folds are preferred to leave-one-out.
    assert (cells.worth, cells.recovered) == (pytest.approx([30]), pytest.approx([-10]))
    by_loo = {k: v for k, v in SURVEY.items() if k not in ("folds", "fixed")}
    without = knob_cells(panel(as_table(surveyed(by_loo))), "clap")
    assert (without.worth, without.recovered) == (pytest.approx([40]), pytest.approx([-10]))
    ends = {"grid": [0, 1], "test": [0.2, 0.8], "ensemble": 0.1}
    cells = knob_cells(panel(as_table(surveyed(ends))), "clap")
    assert (cells.worth, cells.recovered) == (pytest.approx([0]), None)


def test_what_a_knob_recovers_is_a_dash_where_nothing_chose_it_freely():
    chosen, ends = surveyed(SURVEY), surveyed({"grid": [0, 1], "test": [0.2, 0.8], "ensemble": 0.5}, method="lpp")
    made = table("knobs", chosen + ends)
    assert [cells(line)[-2] for line in made.rows] == ["−10.00 [no interval]", "–"]


def test_selectors_share_the_cells_that_all_of_them_have():
    part = {k: v for k, v in SURVEY.items() if k != "loo"}
    found = panel(as_table(surveyed(part, SURVEY, {"grid": [0], "test": [0.5]})))
    assert surveys(found) == ["clap"]
    assert knob_cells(found, "clap").rows.tolist() == [1]
    assert knob_cells(found, "clap", ["fixed"]).rows.tolist() == [0, 1]
    assert surveys(panel(as_table(surveyed({})))) == []


def draw(shots, seed=-1):
    return ("alpha", "ViT-B-16", "dataset", shots, seed, "balanced")


def test_probes_of_one_stratum_are_averaged_by_shots():
    values = {
        "offset.share": {draw(0): 0.8},
        "spread.measured SD": {draw(2, 0): 1.0, draw(2, 1): 3.0, draw(4, 0): 8.0},
        "spread.predicted SD": {draw(2, 0): 4.0, draw(2, 1): 4.0, draw(4, 0): 4.0},
        "counterfactual.deficit": {draw(2, 0): 4.0, draw(4, 0): 0.0},
        "counterfactual.recovered": {draw(2, 0): -1.0, draw(4, 0): -1.0},
    }
    offset, spread, counterfactual = stratum_tables(Probed(values))
    assert (offset.columns, [cells(line) for line in offset.rows]) == (("share",), [["0.8"]])
    assert spread.columns == ("K", "measured SD", "predicted SD", "measured/predicted")
    assert [cells(line) for line in spread.rows] == [["2", "2", "4", "0.5"], ["4", "8", "4", "2"]]
    assert [cells(line)[-1] for line in counterfactual.rows] == ["0.25", "–"]
    assert "squared cosines" in offset.caption


def test_text_free_backbones_are_pooled_from_four_shots_on():
    levels = {"logistic_probe": 60, "oracle_lambda": 50, "zero_shot": 40}
    rows = records(levels, backbones=("ViT-B-16", "DINO"), text_free=("DINO",))
    found = table("text_free", rows)
    assert [line[0] for line in found.rows] == ["K=1", "K=2", "K=4", "K≥4 pooled"]
    assert "No text-free backbone" not in found.caption
    alone = table("text_free", records(levels, shots=(1, 2)))
    assert [line[0] for line in alone.rows] == ["K=1", "K=2"]
    assert "No text-free backbone" in alone.caption


def test_three_backbones_are_enough_to_rank():
    levels = {"js_blend": 45, "oracle_lambda": 50, "zero_shot": 40, "clap": 55, "loo_blend": 49, "lpp": 56}
    three = table("per_backbone", records(levels, backbones=("ViT-B-16", "RN50", "ViT-B-32")))
    assert "over the 3 backbones" in three.caption
    assert "Rank correlation" not in table("per_backbone", records(levels, backbones=("ViT-B-16", "RN50"))).caption


def test_a_better_prompt_is_paired_with_the_generic_one_where_both_exist():
    levels = {"zero_shot": lambda row: 45 if row["tier"] == "dataset" else 40, "oracle_lambda": 50, "loo_blend": 49}
    rows = records(levels, tiers=("photo", "dataset"))
    lonely = [row for row in rows if (row["tier"], row["dataset"]) != ("dataset", "gamma")]
    for row in rows:
        row["d2"] = 1.0 if row["tier"] == "dataset" else 1.5
    (line,) = table("prior_upgrade", rows).rows
    assert cells(line)[:3] == ["→ dataset", "+5.00 [+5.00, +5.00]", "−0.5000 [−0.5000, −0.5000]"]
    assert cells(line)[-1] == "18"
    assert [line[-1] for line in map(cells, table("prior_upgrade", lonely).rows)] == ["12"]


def test_a_dataset_at_the_end_of_its_published_band_passes():
    rows = records({"zero_shot": 60.0})
    for band, verdict in (((50, 60), "pass"), ((60, 70), "pass"), ((61, 70), "FAIL")):
        gates = {"alpha": Gate("official", band)}
        context = Context(gates=gates, band_backbone="ViT-B-16", band_tier="dataset")
        assert cells(table("datasets", rows, context).rows[0])[-1] == verdict


def test_profiles_are_compared_in_one_tier():
    rows = [
        row | {"profile": profile}
        for profile, level in (("balanced", 60), ("long-tailed", 50))
        for row in records({"clap": level, "zero_shot": 40}, tiers=("dataset", "photo"))
    ]
    found = table("profiles", rows)
    assert found.columns == ("method", "balanced", "long-tailed", "long-tailed − balanced")
    assert "The same 12 draws" in found.caption
    assert [cells(line) for line in found.rows] == [
        ["CLAP", "60.0", "50.0", "−10.00 [−10.00, −10.00]"],
        ["Zero-shot", "40.0", "40.0", "+0.00 [+0.00, +0.00]"],
    ]


def test_a_table_without_figures_keeps_its_title_and_says_why():
    made = table("per_dataset", records({"clap": None}))
    assert (made.rows, made.title) == ((), "Accuracy (%) per dataset")
    assert made.caption
