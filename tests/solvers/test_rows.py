"""Rows, class means and shrinkage against loops and formulas written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshot.errors import InputError
from kshot.solvers.rows import (
    class_independent_share,
    class_means,
    class_sums,
    correct_for_shots,
    james_stein_ratio,
    mean_variances,
    population_moments,
    unit_rows,
)
from problems import problem


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 10**6))
def test_class_sums_equal_a_loop(labels, seed):
    y = np.array(labels)
    X = np.random.default_rng(seed).normal(size=(len(y), 3))
    sums = class_sums(X, y, 6)
    for c in range(6):
        assert np.allclose(sums[c], X[y == c].sum(axis=0))


def test_class_means():
    X = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]])
    assert np.array_equal(class_means(X, np.array([0, 0, 1]), 2), [[2.0, 0.0], [0.0, 5.0]])


def test_unit_rows_name_the_bad_ones():
    X = np.ones((9, 2))
    X[[1, 2, 3, 4, 5, 6]] = 0
    with pytest.raises(InputError, match=r"my rows has zero vectors in 6 row\(s\): 1, 2, 3, 4, 5 …"):
        unit_rows(X, "my rows")
    with pytest.raises(InputError, match="two dimensions"):
        unit_rows(np.ones(3), "my rows")


def test_masked_entries_are_no_numbers():
    X = np.ma.masked_array(np.ones((2, 3)), [[False] * 3, [True, False, False]])
    with pytest.raises(InputError, match="support cannot be read as an array: some entries are masked"):
        unit_rows(X, "support")
    assert unit_rows(X[:1], "support") == pytest.approx(3**-0.5)


@pytest.mark.parametrize("length", [1e-44, 1e-25, 1e-20, 1e20, 3e38])
def test_rows_of_any_length_keep_their_direction(length):
    """In float64 none of these lengths is extreme."""
    X = np.array([[0.6, -0.8, 0.0], [1.0, 0.5, -0.25], [0.0, 1.0, 0.0]])
    given = (length * X).astype(np.float32)
    exact = given.astype(np.float64)
    expected = exact / np.sqrt((exact**2).sum(axis=1, keepdims=True))
    assert np.allclose(unit_rows(given, "rows"), expected, atol=1e-6)


@pytest.mark.parametrize("length", [1e-320, 1e-200, 1e-50, 1e50, 1e200, 1e308])
def test_rows_in_float64_keep_their_direction_in_either_dtype(length):
    X = np.array([[3.0, -4.0], [0.0, 5.0]]) / 5
    for dtype in (np.float32, np.float64):
        found = unit_rows(length * X, "rows", np.dtype(dtype))
        assert found.dtype == dtype
        assert np.allclose(found, X, atol=1e-3 if length < 1e-300 else 1e-6)


def test_ordinary_rows_have_the_bits_of_a_plain_division_beside_extreme_ones():
    X = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    plain = X / np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]
    more = np.vstack([X, np.full((1, 7), 1e20, np.float32)])
    assert np.array_equal(unit_rows(X, "rows"), plain)
    assert np.array_equal(unit_rows(more, "rows")[:-1], plain)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_beside_large_numbers(value):
    with pytest.raises(InputError, match=r"NaN or infinite values in 1 row\(s\): 1"):
        unit_rows(np.array([[1e30, 0.0], [1e30, value]], np.float32), "rows")


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
    assert np.isnan(class_independent_share(means, means))


@pytest.mark.parametrize(
    ("lam", "shots", "expected"), [(0.5, 2, 2 / 3), (0.0, 4, 0.0), (1.0, 4, 1.0), (0.2, 5, 5 / 21)]
)
def test_k_correction(lam, shots, expected):
    """Odds r = λ/(1−λ) become r·K/(K−1): 0.5 at K=2 has odds 1 → 2 → 2/3; 0.2 at K=5 has 1/4 → 5/16."""
    assert correct_for_shots(lam, shots) == pytest.approx(expected)
