"""Sample-level tests, corrections, normal scores, and the promise of the intervals."""

import numpy as np
import pytest
from scipy import stats

from kshot.stats.bootstrap import cluster_mean, simultaneous
from kshot.stats.coverage import PAPER_DESIGN, Design, simulate_coverage
from kshot.stats.paired_tests import holm, mcnemar
from kshot.stats.scores import normal_level, normal_score


def test_mcnemar_is_the_exact_binomial_test():
    first, second = np.array([0, 3, 12, 40, 7]), np.array([0, 9, 2, 41, 7])
    expected = [
        stats.binomtest(int(a), int(a + b)).pvalue if a + b else 1.0 for a, b in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(mcnemar(first, second), expected)


def test_holm_by_hand_and_in_any_order():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])
    order = np.array([2, 0, 3, 1])
    np.testing.assert_allclose(holm(p[order]), holm(p)[order])
    assert holm(np.array([0.9, 0.8])).max() == 1


def test_simultaneous_intervals_use_the_level_divided_by_their_number():
    rng = np.random.default_rng(0)
    names = np.repeat(list("abcde"), 8)
    plain = {m: cluster_mean(rng.normal(size=40), names) for m in "xyz"}
    wider = simultaneous(plain)
    for name, estimate in plain.items():
        half = stats.t.ppf(1 - 0.05 / 3 / 2, 4) * estimate.error
        assert wider[name].high == pytest.approx(estimate.mean + half)
        assert wider[name].low < estimate.low


def test_coverage_of_ten_clusters_as_the_study_measured_it():
    found = simulate_coverage(PAPER_DESIGN, trials=8_000)
    assert found.percentile == pytest.approx(0.893, abs=0.012)
    assert 0.937 - 3 * found.error < found.student_t < 0.948 + 3 * found.error


def test_coverage_of_two_clusters_in_closed_form():
    """The sum of two normal effects over their difference is Cauchy; the bootstrap's error is the difference / √8."""
    found = simulate_coverage(Design((3, 3), 1.0, 0.0), trials=4_000, resamples=2_000)
    held = 2 / np.pi * np.arctan(stats.t.ppf(0.975, 1) / np.sqrt(2))
    assert found.student_t == pytest.approx(held, abs=4 * found.error)


def test_many_clusters_need_no_correction():
    found = simulate_coverage(Design((4,) * 60, 1.0, 1.0), trials=2_000, resamples=500)
    assert found.percentile == pytest.approx(0.945, abs=0.02)
    assert found.student_t == pytest.approx(0.95, abs=0.02)


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
