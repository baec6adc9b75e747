"""Intervals against scipy's bootstrap and against a plain loop."""

import re

import numpy as np
import pytest
from scipy import stats

from kshot.stats.bootstrap import RESAMPLES, Estimate, cluster_mean, finite_mean, finite_median


def clustered(seed=0, sizes=(5, 9, 3, 7, 6, 8)):
    rng = np.random.default_rng(seed)
    names = np.repeat([f"d{i}" for i in range(len(sizes))], sizes)
    effect = dict(zip(np.unique(names), rng.normal(1, 2, len(sizes)), strict=True))
    return np.array([effect[name] for name in names]) + rng.normal(size=len(names)), names


def test_standard_error_and_percentiles_agree_with_scipy():
    values, names = clustered()
    groups = [values[names == name] for name in np.unique(names)]

    def mean_of(indices):
        return np.concatenate([groups[i] for i in indices]).mean()

    theirs = stats.bootstrap(
        (np.arange(len(groups)),), mean_of, vectorized=False, n_resamples=RESAMPLES, method="percentile", rng=1
    )
    ours = cluster_mean(values, names)
    assert ours.error == pytest.approx(theirs.standard_error, rel=0.03)
    # A quantile's Monte Carlo error is about 0.03 standard errors at 10,000 resamples; 5 % of one is generous.
    assert ours.percentile[0] == pytest.approx(theirs.confidence_interval.low, abs=0.1 * ours.error)
    assert ours.percentile[1] == pytest.approx(theirs.confidence_interval.high, abs=0.1 * ours.error)


def test_missing_values_are_left_out_and_one_cluster_has_no_interval():
    values, names = clustered()
    values[0] = np.nan
    assert cluster_mean(values, names).n == 37
    alone = cluster_mean(values[1:5], names[1:5])
    assert (alone.low, alone.high, alone.percentile) == (None, None, None)
    assert not alone.excludes_zero
    nothing = cluster_mean(np.full(3, np.nan), names[:3])
    assert nothing.n == 0
    assert np.isnan(nothing.mean)


def test_a_mean_and_a_median_of_what_is_known():
    values = np.array([1.0, np.nan, 2.0, 9.0, np.inf])
    assert (finite_mean(values), finite_median(values)) == (4.0, 2.0)
    assert np.isnan([finite_mean(values[1:2]), finite_median(values[:0])]).all()


@pytest.mark.parametrize("estimate", [Estimate(-0.5, None, None, 14400, 1), Estimate(-0.5, -1.0, 0.0, 14400, 9)])
def test_a_notebook_shows_every_figure_below_its_name(estimate):
    rows = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in estimate._repr_html_().split("</tr>")[:2]]
    shown = dict(zip(*rows, strict=True))
    assert float(shown["mean"]) == -0.5
    assert (shown["n"], shown["G"]) == ("14400", str(estimate.G))
    ends = ["no interval"] * 2 if estimate.low is None else [-1, 0]
    assert [end if end == "no interval" else float(end) for end in (shown["low"], shown["high"])] == ends


def test_an_estimate_over_no_cell_has_no_mean():
    nothing = cluster_mean(np.full(3, np.nan), np.array(["a", "b", "b"]))
    assert "nan" not in f"{nothing} {nothing._repr_html_()}"
