"""Small cases worked out by other means: every resample in a loop, analysis of variance in sums, answers on paper.

They kill the mutants that the larger tests let pass (tests/campaigns/mutation.py).
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from kshot.errors import StudyError
from kshot.stats.answers import answers_of
from kshot.stats.bootstrap import Estimate, cluster_mean, cluster_means, shared_draws, simultaneous
from kshot.stats.correlation import association, rank_correlation, spearman, within
from kshot.stats.coverage import Coverage, Design, matched_design, simulate_coverage
from kshot.stats.leaderboard import leaderboard, paired_with, side_by_side
from kshot.stats.metrics import ACCURACY, METRICS, class_mean_accuracy, find_metric, seen_accuracy, unseen_accuracy
from kshot.stats.paired_tests import SampleContrast, sample_contrast
from kshot.stats.panel import panel
from synthetic_records import SEES, as_table, synthetic_rows

NAMES = np.array(list("abbcccd"))
A = np.array([1.0, 2.0, 2.0, 5.0, 3.0, 8.0, 4.0])
B = np.array([2.0, 1.0, 4.0, 6.0, 3.0, 7.0, 8.0])
C = np.array([1.0, 3.0, 2.0, 4.0, 4.0, 5.0, 9.0])


def over_all_draws(names, statistic):
    """The statistic of the rows of every resample; equal draws are computed once."""
    groups = [np.flatnonzero(names == name) for name in np.unique(names)]

    @cache
    def of(counts):
        return statistic(np.concatenate([np.tile(g, n) for g, n in zip(groups, counts, strict=True)]))

    return np.array([of(tuple(draw)) for draw in shared_draws(len(groups)).astype(int)])


@pytest.mark.parametrize("names", [NAMES, np.array(list("aabbbbc"))])
def test_a_mean_with_holes_over_every_resample(names):
    values = A.copy()
    values[3] = np.nan
    known = np.isfinite(values)
    means = over_all_draws(names[known], lambda rows: values[known][rows].mean())
    found = cluster_mean(values, names)
    error = means.std(ddof=1)
    half = stats.t.ppf(0.975, len(set(names)) - 1) * error
    assert (found.n, found.G) == (6, len(set(names)))
    assert found.mean == pytest.approx(np.nanmean(values))
    assert found.error == pytest.approx(error)
    assert (found.low, found.high) == pytest.approx((np.nanmean(values) - half, np.nanmean(values) + half))
    assert found.percentile == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))


def test_clusters_that_a_column_lacks_do_not_enter_its_resamples():
    values = np.column_stack([A, B])
    values[NAMES == "c", 1] = np.nan
    left = NAMES != "c"
    both, alone = cluster_means(values, NAMES), cluster_mean(B[left], NAMES[left])
    means = over_all_draws(NAMES[left], lambda rows: B[left][rows].mean())
    assert both[1].error == pytest.approx(means.std(ddof=1))
    assert both[1] == alone
    assert both[0] == cluster_mean(A, NAMES)


def test_draws_that_are_shared_cannot_be_overwritten():
    with pytest.raises(ValueError, match="read-only"):
        shared_draws(3)[0, 0] = 7


@pytest.mark.parametrize(
    ("low", "high", "excluded"),
    [(0.5, 0.9, True), (-0.9, -0.5, True), (0.0, 1.0, False), (-1.0, 0.0, False), (-0.5, 0.5, False)],
)
def test_an_interval_that_touches_zero_does_not_exclude_it(low, high, excluded):
    found = Estimate((low + high) / 2, low, high, 4, 2)
    assert found.excludes_zero is excluded
    assert found.reaches_zero is not excluded
    assert not Estimate(0.0, None, None, 4, 1).reaches_zero


def test_an_estimate_in_words():
    told = "+1.50 [+1.00, +2.00], n = 4 cells, G = 3 datasets"
    assert str(Estimate(1.5, 1.0, 2.0, 4, 3)) == told
    assert str(Estimate(-1.5, None, None, 4, 1)) == "-1.50 [no interval], n = 4 cells, G = 1 dataset"


@pytest.mark.parametrize("given", [None, C])
@pytest.mark.parametrize("names", [NAMES, np.array(list("aabbbbb"))])
def test_a_rank_correlation_over_every_resample(names, given):
    def rho(rows):
        ab, ac, bc = (rank_rho(x[rows], y[rows]) for x, y in ((A, B), (A, C), (B, C)))
        return ab if given is None else (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))

    with np.errstate(invalid="ignore", divide="ignore"):
        every = over_all_draws(names, rho)
    every = every[np.isfinite(every)]
    found = spearman(A, B, names, given)
    half = stats.t.ppf(0.975, len(set(names)) - 1) * every.std(ddof=1)
    assert found.mean == pytest.approx(rho(np.arange(7)))
    assert found.error == pytest.approx(every.std(ddof=1))
    assert found.percentile == pytest.approx(tuple(np.quantile(every, [0.025, 0.975])))
    assert found.low == pytest.approx(max(-1, found.mean - half))
    assert found.high == pytest.approx(min(1, found.mean + half))


def rank_rho(a, b):
    a, b = (x - x.mean() for x in (stats.rankdata(a), stats.rankdata(b)))
    return (a @ b) / np.sqrt((a @ a) * (b @ b))


def test_a_rank_correlation_stays_between_minus_one_and_one():
    nearly = np.array([1.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0])
    up, down = spearman(np.arange(7.0), nearly, NAMES), spearman(np.arange(7.0), -nearly, NAMES)
    assert (up.high, down.low) == (1.0, -1.0)
    assert up.low < up.mean < 1
    assert -1 < down.mean < down.high


def test_three_points_have_a_rank_correlation_and_two_have_none():
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(0.5)
    assert np.isnan(rank_correlation(np.array([1.0, 2.0]), np.array([1.0, 3.0])))
    # Ranks 123, 1 2½ 2½ and 1½ 1½ 3: √¾, √¾ and ½ in pairs, so (√¾ − √¾/2) / √(¼·¾) = 1.
    sides = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]), np.array([1.0, 1.0, 2.0])
    assert rank_correlation(*sides) == pytest.approx(1)


def test_an_association_takes_last_bits_for_ties_and_medians_inside_groups():
    groups = np.repeat(["x", "y", "z"], 4)
    predicted = np.array([1.0, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4])
    measured = np.array([1.0, 2, 3, 4, 1, 2, 4, 3, 4, 3, 2, 1])
    # 1, 0.8 and −1 inside the groups; NaN where one is constant.
    assert within(predicted, measured, groups) == pytest.approx(0.8)
    measured[:4] = 0.0
    assert within(predicted, measured, groups) == pytest.approx(-0.1)
    assert np.isnan(within(predicted, np.zeros(12), groups))
    noise = 2e-11 * np.arange(12)
    backbones = np.tile(["p", "q"], 6)
    found = association(predicted, measured + noise, noise[::-1] + predicted, groups, backbones)
    assert found.rho == spearman(predicted, measured, groups)
    assert found.within_dataset == pytest.approx(-0.1)
    assert found.within_backbone == within(predicted, measured, backbones)
    assert np.isnan(found.given_difficulty.mean)
    other = measured[::-1] ** 2
    given = association(predicted, measured, other, groups, backbones).given_difficulty
    assert given == spearman(predicted, measured, groups, other)


def test_variance_components_are_those_of_an_analysis_of_variance():
    names = np.repeat(["a", "b", "c"], [3, 4, 2])
    values = np.array([1.0, 2.0, 4.0, 7.0, 9.0, 6.0, 8.0, 3.0, 5.5])
    groups = [values[names == name] for name in "abc"]
    within_square = sum(((g - g.mean()) ** 2).sum() for g in groups) / (9 - 3)
    between_square = within_square * stats.f_oneway(*groups).statistic
    typical = (9 - (9 + 16 + 4) / 9) / 2
    found = matched_design(np.append(values, np.nan), np.append(names, "d"))
    assert found.sizes == (3, 4, 2)
    assert found.within == pytest.approx(np.sqrt(within_square))
    assert found.between == pytest.approx(np.sqrt((between_square - within_square) / typical))
    assert matched_design(np.array([1.0, 5.0, 1.0, 5.0]), np.array(list("aabb"))).between == 0
    assert matched_design(np.array([1.0, 5.0, 2.0]), np.array(list("abc"))).within == 0


def test_coverage_counts_every_world_once():
    assert Coverage(0.9, 0.8, 100).error == pytest.approx(0.04)
    found = simulate_coverage(Design((2, 3), 0.0, 0.0), trials=300, resamples=20)
    assert (found.percentile, found.student_t, found.trials) == (1.0, 1.0, 300)
    # Two resamples are the fewest that have a standard deviation.
    assert 0 <= simulate_coverage(Design((2, 3), 1.0, 1.0), trials=20, resamples=2).student_t <= 1


def board_rows(**options):
    return synthetic_rows(backbones=("ViT-B-16",), tiers=("dataset",), shots=(1, 2), **options)


def test_differences_that_stand_side_by_side_have_the_same_cells():
    rows = [r for r in board_rows() if not (r["method"] == "lpp" and r["dataset"] == "beta")]
    found = panel(as_table(rows))
    beside, alone = (f(found, ["clap", "lpp"], "zero_shot") for f in (side_by_side, paired_with))
    apart = found.column("clap") - found.column("zero_shot")
    assert alone["clap"].mean == pytest.approx(apart.mean())
    assert beside["clap"] == alone["clap"]
    assert (alone["lpp"].n, alone["lpp"].G) == (18, 3)
    assert (beside["lpp"].n, beside["lpp"].G, beside["lpp"].low) == (0, 0, None)
    assert np.isnan(beside["lpp"].mean)
    assert paired_with(found, [], "zero_shot") == {}


def test_transductive_heads_and_reference_points_are_apart():
    rows = board_rows()
    for row in rows:
        if row["method"] == "lpp":
            row["sees"] = ["queries", "support", "text"]
    board = leaderboard(panel(as_table(rows)))
    assert [p.method for p in board.transductive] == ["lpp"]
    assert [p.method for p in board.reference_points] == ["oracle_lambda"]
    assert {p.method for p in board.ranked} == SEES.keys() - {"lpp", "oracle_lambda"}
    assert board.counted == "K≥2"
    first = leaderboard(panel(as_table([r for r in rows if r["shots"] == 1])))
    assert (first.counted, first.shots, first.combinations) == ("K=1", (1,), 4)
    clap = next(p for p in first.ranked if p.method == "clap")
    assert clap.mean == pytest.approx(clap.by_shots[1])


def test_nothing_is_ranked_where_no_combination_has_every_shot_count():
    rows = [r for r in board_rows() if (r["dataset"] in ("alpha", "beta")) == (r["shots"] == 1)]
    board = leaderboard(panel(as_table(rows)))
    assert (board.combinations, board.cells, board.datasets, board.shots) == (0, 0, 0, ())
    assert all(placing.behind_leader is None for placing in board.ranked)
    assert leaderboard(panel(as_table(board_rows(methods=("clap",))))).ranked[0].mean > 0


def test_a_class_with_one_test_picture_counts_like_any_other():
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.8, 0.1, 0.1], [0.1, 0.2, 0.7]])
    found = answers_of(p, np.array([0, 0, 1, 2]), p.argmax(axis=1))
    assert class_mean_accuracy(found) == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert np.isnan(seen_accuracy(found))
    assert np.isnan(unseen_accuracy(found))


def test_one_simultaneous_interval_is_the_plain_one_and_none_stays_none():
    plain, without = cluster_mean(A, NAMES), Estimate(1.0, None, None, 3, 1)
    found = simultaneous({"a": plain, "b": without})
    assert (found["a"].low, found["a"].high) == pytest.approx((plain.low, plain.high))
    assert found["b"] == without
    assert simultaneous({"b": without}) == {"b": without}


def test_a_cell_is_decided_below_five_per_cent_for_whoever_is_right_more_often():
    found = SampleContrast(
        "one",
        "two",
        only_first=np.array([9, 1, 5, 6, 9, 9, 4]),
        only_second=np.array([1, 9, 5, 5, 1, 1, 4]),
        pictures=np.full(7, 100),
        p=np.array([0.01, 0.01, 1.0, 0.9, 0.05, 0.049, 1.0]),
    )
    assert found.decided_for() == (2, 1, 4)


def hits(*bits):
    return np.packbits(np.array(bits, bool)).tobytes()


def test_hits_end_with_the_test_set_and_the_first_record_counts():
    keys = ("dataset", "backbone", "tier", "shots", "seed")
    rows = [r for r in board_rows(methods=("clap", "lpp"), datasets=("alpha",), seeds=(0,)) if r["shots"] == 2]
    (clap,), (lpp,) = ([r for r in rows if r["method"] == m] for m in ("clap", "lpp"))
    clap.update(n_test=7, hits=hits(1, 1, 0, 1, 0, 0, 1))
    lpp.update(n_test=7, hits=hits(0, 0, 1, 0, 1, 0, 1))
    found = sample_contrast(panel(as_table([clap, lpp])), "clap", "lpp")
    assert (found.only_first.tolist(), found.only_second.tolist()) == ([3], [2])
    assert found.pictures.tolist() == [7]
    assert found.p == pytest.approx(stats.binomtest(2, 5).pvalue)
    empty = lpp | {key: clap[key] for key in keys} | {"hits": b""}
    assert len(sample_contrast(panel(as_table([clap, empty])), "clap", "lpp").p) == 0
    for rows, second in (([clap, lpp | {"seed": 1}], "lpp"), ([clap, lpp], "nothing")):
        nothing = sample_contrast(panel(as_table(rows)), "clap", second)
        assert len(nothing.p) == 0
        assert nothing.decided_for() == (0, 0, 0)


def test_one_record_is_a_panel_and_its_study_is_told():
    (row,) = board_rows(methods=("clap",), datasets=("alpha",), seeds=(0,))[:1]
    found = panel(as_table([row]), only="dataset alpha")
    origin = found.origin
    assert (origin.study, origin.versions, origin.dtype) == ("synthetic", ("0.1.0",), "float32")
    assert (origin.simulated, origin.only, origin.imported) == (False, "dataset alpha", False)
    assert panel(as_table([row | {"simulated": True}])).origin.simulated


def test_ratios_are_read_where_there_are_some():
    texts = ['{"lambda": 0.25}', '{"lambda": {"mean": 0.5, "min": 0.1}}', '{"alpha": 3}', "", None]
    rows = board_rows(methods=("clap",), datasets=("alpha",), seeds=range(5))
    rows = [r | {"selected": text} for r, text in zip(rows[:5], texts, strict=True)]
    np.testing.assert_array_equal(panel(as_table(rows)).column("clap", "ratio"), [0.25, 0.5, np.nan, np.nan, np.nan])


def test_the_guard_needs_one_cell_of_every_shot_count_and_no_more():
    rows = board_rows(methods=("clap",), seeds=(0,))
    found = panel(as_table([r for r in rows if (r["dataset"], r["shots"]) != ("beta", 1)]))
    assert (found.present_at_every_shot_count() == (found.dataset != "beta")).all()
    assert found.where(found.shots > 99).present_at_every_shot_count().shape == (0,)


def test_cells_that_hold_every_method_that_exists_at_all():
    rows = [r for r in board_rows() if not (r["method"] == "lpp" and r["dataset"] == "beta")]
    found = panel(as_table(rows))
    assert set(found.with_all(["lpp", "clap", "never"]).dataset) == {"alpha", "gamma", "delta"}
    assert len(found.with_all(["never"]).shots) == len(found.shots) == 24
    assert np.isfinite(found.with_text().d2).all()


def test_accuracy_on_classes_with_and_without_shots():
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.8, 0.1, 0.1], [0.1, 0.2, 0.7]])
    found = answers_of(p, np.array([0, 0, 1, 2]), p.argmax(axis=1))
    found = replace(found, unseen=np.array([False, True, True]))
    assert (seen_accuracy(found), unseen_accuracy(found)) == (0.5, 0.5)
    found = replace(found, unseen=np.array([False, True, False]))
    assert (seen_accuracy(found), unseen_accuracy(found)) == (pytest.approx(2 / 3), 0.0)
    assert np.isnan(unseen_accuracy(replace(found, unseen=np.zeros(3, bool))))
    assert seen_accuracy(replace(found, unseen=np.zeros(3, bool))) == 0.5


def test_another_metric_is_scaled_and_stays_in_its_cells():
    rows = board_rows(methods=("clap", "lpp"), datasets=("alpha",), seeds=(0,))[:3]
    found = panel(as_table(rows)).by_metric(METRICS["ece"], np.array([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(found.column("clap"), [10, 30])
    np.testing.assert_allclose(found.column("lpp"), [20, np.nan])
    assert found.metric is METRICS["ece"]


def test_a_metric_of_your_own_must_be_one():
    assert find_metric("kshot.stats.metrics:ACCURACY") is ACCURACY
    assert find_metric(ACCURACY) is ACCURACY
    assert find_metric("nll") is METRICS["nll"]
    with pytest.raises(StudyError, match="BINS is a int"):
        find_metric("kshot.stats.metrics:BINS")
    with pytest.raises(StudyError, match="Did you mean nll"):
        find_metric("nl")
