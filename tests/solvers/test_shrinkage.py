"""Shrinkage algebra against the formulas written out."""

import numpy as np
import pytest

from kshot.solvers.rows import (
    class_independent_share,
    class_means,
    correct_for_shots,
    james_stein_ratio,
    mean_variances,
    population_moments,
)
from problems import problem


def test_mean_variance_is_the_trace_of_the_covariance_over_k():
    data = problem(counts=[2, 3, 4, 5, 6, 7])
    means = class_means(data.X, data.y, 6)
    expected = [np.trace(np.cov(data.X[data.y == c].T)) / np.sum(data.y == c) for c in range(6)]
    assert np.allclose(mean_variances(data.X, data.y, means), expected)
    traces = population_moments(data.X, data.y, 6)[1]
    assert np.allclose(traces, [np.trace(np.cov(data.X[data.y == c].T)) for c in range(6)])


def test_ratio_is_clipped_and_defined_at_zero_distance():
    ratios = james_stein_ratio(np.array([0.2, 2.0, 0.5, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert np.allclose(ratios, [0.8, 0, 0, 0])


def test_share_is_one_for_a_pure_shift_and_zero_without_one():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 4))
    assert class_independent_share(means, means + rng.normal(size=4)) == pytest.approx(1)
    scatter = rng.normal(size=(5, 4))
    assert class_independent_share(means, means + scatter - scatter.mean(axis=0)) == pytest.approx(0)


@pytest.mark.parametrize(
    ("lam", "shots", "expected"), [(0.5, 2, 2 / 3), (0.0, 4, 0.0), (1.0, 4, 1.0), (0.2, 5, 5 / 21)]
)
def test_k_correction(lam, shots, expected):
    """Odds r = λ/(1−λ) become r·K/(K−1): 0.5 at K=2 has odds 1 → 2 → 2/3; 0.2 at K=5 has 1/4 → 5/16."""
    assert correct_for_shots(lam, shots) == pytest.approx(expected)
