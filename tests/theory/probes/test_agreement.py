import csv

import numpy as np
import pytest
from scipy.stats import spearmanr

from kshot.stats.correlation import rank_correlation, within
from kshot.theory.probes.agreement import surplus_row, tuned_weight_rows


def test_spearman_is_scipys_with_ties():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, size=(2, 40)).astype(float)
    assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)


def test_partial_correlation_is_the_textbook_combination():
    rng = np.random.default_rng(1)
    c = rng.normal(size=60)
    a, b = c + rng.normal(size=60), c + rng.normal(size=60)
    ab, ac, bc = rank_correlation(a, b), rank_correlation(a, c), rank_correlation(b, c)
    expected = (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))
    assert rank_correlation(a, b, c) == pytest.approx(expected)


def test_within_groups_ignores_what_only_separates_the_groups():
    groups = np.repeat(["x", "y"], 5)
    a = np.r_[np.arange(5.0), 100 + np.arange(5.0)]
    b = np.r_[-np.arange(5.0), 100 - np.arange(5.0)]
    assert rank_correlation(a, b) > 0
    assert within(a, b, groups) == pytest.approx(-1)


def test_what_does_not_vary_has_no_correlation():
    constant, rising = np.ones(5), np.arange(5.0)
    assert np.isnan(rank_correlation(constant, rising))
    assert np.isnan(rank_correlation(rising, rising, rising))
    assert np.isnan(within(constant, rising, np.zeros(5)))


def test_the_studys_strata_give_the_studys_correlations(published):
    """+0.61 overall, +0.70 within datasets, +0.62 within backbones; the table's rounding makes ties."""
    with (published / "strata.csv").open() as file:
        strata = list(csv.DictReader(file))
    headroom, surplus = (np.array([float(s[name]) for s in strata]) for name in ("headroom_pp", "clap_surplus_pp"))
    dataset, backbone = (np.array([s[name] for s in strata]) for name in ("dataset", "backbone"))
    row = surplus_row(headroom, surplus, np.arange(50.0), dataset, backbone)
    assert row["strata"] == 50
    assert row["Spearman"] == pytest.approx(0.61, abs=0.05)
    assert row["within dataset"] == pytest.approx(0.70, abs=0.1)
    assert row["within backbone"] == pytest.approx(0.62, abs=0.1)


def test_tuned_weights_are_compared_inside_each_backbone():
    backbone = np.repeat(["a", "b"], 4)
    rising = np.arange(4.0)
    rows = tuned_weight_rows(backbone, np.r_[rising, -rising], np.r_[rising, rising], np.r_[rising, rising + 10])
    assert [(row["backbone"], row["cells"]) for row in rows] == [("a", 4), ("b", 4)]
    assert [round(row["James–Stein"], 9) for row in rows] == [1, -1]
    assert [round(row["leave-one-out"], 9) for row in rows] == [1, 1]
