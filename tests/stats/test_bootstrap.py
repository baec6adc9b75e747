"""Intervals against scipy's bootstrap and against a plain loop."""

import numpy as np
import pytest
from scipy import stats

from kshot.stats.bootstrap import cluster_mean, cluster_sums, resampled_means


def clustered(seed=0, sizes=(5, 9, 3, 7, 6, 8)):
    rng = np.random.default_rng(seed)
    names = np.repeat([f"d{i}" for i in range(len(sizes))], sizes)
    effect = dict(zip(np.unique(names), rng.normal(1, 2, len(sizes)), strict=True))
    return np.array([effect[name] for name in names]) + rng.normal(size=len(names)), names


def test_standard_error_agrees_with_scipy():
    values, names = clustered()
    groups = [values[names == name] for name in np.unique(names)]

    def mean_of(indices):
        return np.concatenate([groups[i] for i in indices]).mean()

    theirs = stats.bootstrap(
        (np.arange(len(groups)),), mean_of, vectorized=False, n_resamples=10_000, method="percentile", rng=1
    )
    ours = resampled_means(*cluster_sums(values, names))
    assert ours.std(ddof=1) == pytest.approx(theirs.standard_error, rel=0.03)


def test_interval_is_student_t_with_one_degree_less_than_clusters():
    values, names = clustered()
    found = cluster_mean(values, names)
    error = resampled_means(*cluster_sums(values, names)).std(ddof=1)
    assert found.mean == pytest.approx(values.mean())
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, 5) * error)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    assert (found.n, found.clusters) == (38, 6)


def test_missing_values_are_left_out_and_one_cluster_has_no_interval():
    values, names = clustered()
    values[0] = np.nan
    assert cluster_mean(values, names).n == 37
    alone = cluster_mean(values[1:5], names[1:5])
    assert alone.low is None
    assert alone.high is None
    nothing = cluster_mean(np.full(3, np.nan), names[:3])
    assert nothing.n == 0
    assert np.isnan(nothing.mean)


def test_cluster_interval_is_wider_than_one_that_ignores_clusters():
    values, names = clustered(sizes=(50, 50, 50, 50))
    found = cluster_mean(values, names)
    naive = stats.t.ppf(0.975, 199) * values.std(ddof=1) / np.sqrt(200)
    assert found.high - found.mean > 3 * naive
