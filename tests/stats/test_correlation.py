"""Rank correlations against scipy and against the study's own."""

import csv

import numpy as np
import pytest
from scipy import stats

from kshot.stats.correlation import association, rank_correlation, spearman, weighted_ranks, within

RNG = np.random.default_rng(5)
NAMES = np.repeat(list("abcdefg"), 6)
A = np.round(RNG.normal(size=42), 1)
B = np.round(A + RNG.normal(size=42), 1)
C = np.round(RNG.normal(size=42) + 0.5 * A, 1)


def partial(a, b, c):
    """Closed form from the three plain rank correlations."""
    ab, ac, bc = (stats.spearmanr(x, y).statistic for x, y in ((a, b), (a, c), (b, c)))
    return (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))


def test_weighted_ranks_are_ranks_of_the_repeated_values():
    weights = RNG.integers(0, 4, 42)
    repeated = stats.rankdata(np.repeat(A, weights))
    ours = np.repeat(weighted_ranks(A, weights[None].astype(float))[0], weights)
    np.testing.assert_allclose(ours, repeated)


def test_point_estimates():
    assert spearman(A, B, NAMES).mean == pytest.approx(stats.spearmanr(A, B).statistic)
    assert spearman(A, B, NAMES, C).mean == pytest.approx(partial(A, B, C))


def test_what_has_no_correlation_says_nan_and_one_cluster_no_interval():
    assert np.isnan(spearman(np.ones(42), B, NAMES).mean)
    assert np.isnan(spearman(A[:2], B[:2], NAMES[:2]).mean)
    alone = spearman(A[:6], B[:6], NAMES[:6])
    assert np.isfinite(alone.mean)
    assert alone.low is None
    hole = A.copy()
    hole[0] = np.nan
    assert spearman(hole, B, NAMES).n == 41


@pytest.mark.parametrize("unknown", [np.nan, np.inf])
def test_a_point_that_one_side_does_not_know_is_no_point(unknown):
    a, b, c = A.copy(), B.copy(), C.copy()
    a[3], b[7], c[11] = unknown, unknown, unknown
    both = np.isfinite(a) & np.isfinite(b)
    all_three = both & np.isfinite(c)
    assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(A[both], B[both]).statistic)
    assert rank_correlation(a, b, c) == pytest.approx(partial(A[all_three], B[all_three], C[all_three]))
    assert np.isnan(rank_correlation(np.array([1.0, 2, unknown]), np.array([1.0, 2, 3])))


def test_a_median_within_groups_forgets_unknown_points():
    groups = np.repeat(["x", "y"], 5)
    a = np.array([1.0, 2, 3, 4, np.nan, 1, 2, 3, 4, np.nan])
    b = np.array([1.0, 2, 3, 4, 0, 1, 2, 3, 4, 0])
    assert within(a, b, groups) == pytest.approx(1)


def test_it_is_scipys_with_and_without_a_third_side():
    a, b, c = (np.round(np.random.default_rng(seed).normal(size=(20, 9)), 0) for seed in (1, 2, 3))
    for x, y, z in zip(a, b, c, strict=True):
        assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
        assert rank_correlation(x, y, z) == pytest.approx(partial(x, y, z))
    assert np.isnan(rank_correlation(np.ones(9), b[0]))


def test_small_weights_still_have_a_correlation_and_a_constant_side_has_none():
    """Rounding in weighted ranks is no spread; a spread of one in a thousand points is."""
    one = np.zeros(1000)
    one[0] = 1.0
    assert rank_correlation(one, np.arange(1000.0)) == pytest.approx(stats.spearmanr(one, np.arange(1000)).statistic)
    assert np.isnan(rank_correlation(np.arange(1000.0), np.full(1000, 0.1)))
    # A side that `given` explains whole leaves nothing but rounding.
    assert np.isnan(rank_correlation(A, B, A))


def test_the_studys_strata_give_the_studys_correlations(published):
    """+0.61 overall, +0.70 within datasets, +0.62 within backbones; the table's rounding makes ties."""
    with (published / "strata.csv").open() as file:
        strata = list(csv.DictReader(file))
    headroom, surplus = (np.array([float(s[name]) for s in strata]) for name in ("headroom_pp", "clap_surplus_pp"))
    dataset, backbone = (np.array([s[name] for s in strata]) for name in ("dataset", "backbone"))
    found = association(headroom, surplus, np.arange(50.0), dataset, backbone)
    assert found.rho.mean == pytest.approx(0.61, abs=0.05)
    assert found.within_dataset == pytest.approx(0.70, abs=0.1)
    assert found.within_backbone == pytest.approx(0.62, abs=0.1)
