import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshot.errors import InputError
from kshot.solvers.rows import class_means, class_sums, unit_rows


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
