"""Capacity of all pairs against the formula for one pair, brute force, and the cases where it degenerates."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from kshot.errors import InputError
from kshot.theory import capacity as theory


def problem(seed, classes, d, condition=10.0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(classes, d)) / np.sqrt(d)
    text = means + rng.normal(size=d) + rng.normal(size=(classes, d)) / np.sqrt(d)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spectrum = np.geomspace(1, 1 / condition, d)
    return means, text, (rotation * spectrum) @ rotation.T


def one_pair(means, text, covariance, i, j):
    """Theorem 2 as the study prints it, for one pair."""
    u = means[i] - means[j]
    delta = ((text[i] - means[i]) - (text[j] - means[j])) / 2
    a, q = np.array([u @ u, u @ delta]), np.stack([u, delta]) @ covariance @ np.stack([u, delta]).T
    s = (a[0] * q[0, 1] - a[1] * q[0, 0]) / (2 * (a[1] * q[0, 1] - a[0] * q[1, 1]))

    def margin(s):
        w = u + 2 * s * delta
        return u @ w / np.sqrt(w @ covariance @ w)

    path = max(margin(0.0), margin(1.0), margin(min(max(s, 0.0), 1.0)))
    return max(path, 0) ** 2, a @ np.linalg.solve(q, a), u @ np.linalg.solve(covariance, u)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 9), d=st.integers(3, 40))
def test_all_pairs_equal_the_pair_by_pair_formula(seed, classes, d):
    means, text, covariance = problem(seed, classes, d)
    found = theory.capacity(means, text, covariance)
    pairs = [one_pair(means, text, covariance, i, j) for i, j in zip(*np.triu_indices(classes, 1), strict=True)]
    assert np.allclose(np.stack([found.path, found.plane, found.full], axis=1), pairs, rtol=1e-8)


def test_full_margin_is_what_a_free_search_over_directions_finds():
    means, text, covariance = problem(3, 2, 5)
    u = means[0] - means[1]
    search = minimize(lambda w: -(u @ w) / np.sqrt(w @ covariance @ w), u)
    found = theory.capacity(means, text, covariance)
    assert found.full[0] == pytest.approx(search.fun**2, rel=1e-5)
    assert theory.separation_error(found.full)[0] == pytest.approx(norm.cdf(search.fun / 2), rel=1e-4)


@pytest.mark.slow
def test_a_thousand_classes_fit_and_agree_with_the_formula():
    means, text, covariance = problem(0, 1000, 512, condition=1000.0)
    tracemalloc.start()
    found = theory.capacity(means, text, covariance)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.full) == 499_500
    assert peak < 2e9
    rows, columns = np.triu_indices(1000, 1)
    for k in np.random.default_rng(1).integers(0, len(rows), 50):
        expected = one_pair(means, text, covariance, rows[k], columns[k])
        assert np.allclose([found.path[k], found.plane[k], found.full[k]], expected, rtol=1e-8)


def test_delta_parallel_to_u_makes_the_plane_a_line():
    means, _, covariance = problem(1, 2, 6)
    text = means + 0.3 * means
    found = theory.capacity(means, text, covariance)
    u = means[0] - means[1]
    on_line = (u @ u) ** 2 / (u @ covariance @ u)
    assert found.path[0] == pytest.approx(on_line)
    assert found.plane[0] == pytest.approx(on_line)
    assert found.shrinkage[0] == 0


def test_text_that_agrees_with_the_images_up_to_the_offset():
    means, _, covariance = problem(1, 4, 6)
    found = theory.capacity(means, means + 5.0, covariance)
    assert np.allclose(found.path, found.plane)
    assert (found.path <= found.full + 1e-12).all()


def test_text_that_reverses_the_classes_never_counts_as_separation():
    """The squared margin at s = 1 may be large, but in the wrong direction."""
    means, _, covariance = problem(2, 2, 6)
    found = theory.capacity(means, -3 * means, covariance)
    assert found.shrinkage[0] == 0
    forms = theory.pair_forms(means, -3 * means, covariance)
    assert theory.path_margin(np.ones(1), forms)[0] < 0


def test_coinciding_means_are_a_coin_toss_without_headroom():
    means = np.ones((2, 3))
    found = theory.capacity(means, np.eye(3)[:2], np.eye(3))
    assert theory.separation_error(found.full)[0] == 0.5
    assert theory.headroom(found)[0] == 0
    assert theory.margin_ratio(found)[0] == 1


def test_two_dimensions_leave_no_room_outside_the_plane():
    means, text, covariance = problem(4, 3, 2)
    found = theory.capacity(means, text, covariance)
    assert np.allclose(found.plane, found.full)


def test_nearly_singular_covariance_still_nests():
    means, text, covariance = problem(5, 6, 12, condition=1e11)
    found = theory.capacity(means, text, covariance)
    assert np.isfinite(found.full).all()
    assert (found.path <= found.plane * (1 + 1e-8)).all()
    assert (found.plane <= found.full * (1 + 1e-4)).all()


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.diag([1.0, 1.0, 0.0]), "singular"),
        (np.diag([1.0, 1.0, -1e-3]), "singular"),
        (np.zeros((3, 3)), "singular"),
        (np.triu(np.ones((3, 3))), "not symmetric"),
    ],
)
def test_a_covariance_that_cannot_be_inverted_is_refused(covariance, message):
    with pytest.raises(InputError, match=message):
        theory.capacity(np.eye(3)[:2], np.eye(3)[1:], covariance)


def test_one_class_has_no_pair():
    with pytest.raises(InputError, match="a pair needs two"):
        theory.capacity(np.ones((1, 3)), np.ones((1, 3)), np.eye(3))
