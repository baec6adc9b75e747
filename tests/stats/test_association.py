"""Association over strata: groups, ties, and the study's own correlations."""

import csv

import numpy as np
import pytest

from kshot.stats.correlation import association, rank_correlation, within


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
    found = association(headroom, surplus, np.arange(50.0), dataset, backbone)
    assert found.rho.mean == pytest.approx(0.61, abs=0.05)
    assert found.within_dataset == pytest.approx(0.70, abs=0.1)
    assert found.within_backbone == pytest.approx(0.62, abs=0.1)
