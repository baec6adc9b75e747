"""Normal scores against scipy's distributions."""

import numpy as np
import pytest
from scipy import stats

from kshot.stats.scores import normal_level, normal_score


@pytest.mark.parametrize("freedom", [1.0, 4.0, 30.0])
def test_a_normal_score_is_as_rare_as_students(freedom):
    z = np.array([-6.0, -0.5, 0.0, 0.1, 1.96, 12.0])
    found = normal_score(z, freedom)
    np.testing.assert_allclose(stats.norm.sf(np.abs(found)), stats.t.sf(np.abs(z), freedom), rtol=1e-9)
    assert np.array_equal(np.sign(found), np.sign(z))
    assert normal_score(1e9, 1000.0) == pytest.approx(stats.norm.isf(1e-300))


@pytest.mark.parametrize(("level", "tests"), [(0.05, 1), (0.03, 917), (0.5, 2)])
def test_the_largest_of_many_passes_the_level_that_often(level, tests):
    inside = 1 - 2 * stats.norm.sf(normal_level(level, tests))
    assert 1 - inside**tests == pytest.approx(level)
    assert normal_level(level, 0) == normal_level(level, 1)
