"""Closed forms against known special cases, other libraries and their defined limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import ncx2
from sklearn.covariance import OAS

from kshot.errors import InputError
from kshot.solvers.rows import james_stein_ratio, optimal_ratio
from kshot.theory import blend_error, capacity, decision, sampling

positive = st.floats(0.01, 10)


@given(g2=positive, v=positive)
def test_optimal_risk_is_the_harmonic_combination_and_beats_both_ends(g2, v):
    risk = blend_error.optimal_risk(g2, v)
    assert risk == pytest.approx(1 / (1 / g2 + 1 / v))
    assert risk <= min(g2, v)
    ratio = optimal_ratio(np.array([g2]), np.array([v]))[0]
    assert blend_error.blend_risk(ratio, g2, v) == pytest.approx(risk)


def test_without_bias_and_noise_nothing_is_at_risk():
    zero = np.zeros(1)
    assert optimal_ratio(zero, zero)[0] == 0
    assert blend_error.optimal_risk(0.0, 0.0) == 0
    assert james_stein_ratio(zero, zero)[0] == 0


def test_plug_in_and_classical_rule_differ_by_two_parts_in_d():
    d, v, d2 = 512, np.array([0.4]), np.array([1.0])
    plug_in = 1 - james_stein_ratio(v, d2)
    classical = 1 - blend_error.classical_james_stein_ratio(v / d, d2, d)
    assert classical / plug_in == pytest.approx((d - 2) / d)


@pytest.mark.parametrize(("shots", "d", "holds"), [(2, 5, False), (2, 6, True), (3, 5, True), (16, 4, False)])
def test_dominance_condition_at_its_boundary(shots, d, holds):
    assert blend_error.dominates_mean(shots, d) is holds


@pytest.mark.parametrize(("d", "g2"), [(3, 0.0), (3, 2.0), (40, 30.0), (512, 400.0)])
def test_mean_inverse_square_against_quadrature(d, g2):
    tau2 = 0.7
    centre = d + g2 / tau2
    low, high = max(0.0, centre - 40 * np.sqrt(centre)), centre + 40 * np.sqrt(centre)
    integral = quad(lambda x: ncx2.pdf(x, d, g2 / tau2) / x, low, high, limit=500, points=[centre])[0]
    assert blend_error.mean_inverse_square(g2, tau2, d) == pytest.approx(integral / tau2, rel=1e-4)


def test_the_studys_own_figures_for_isotropic_precision():
    """Study, Sec. 3.3: 9.5e-4 at K = 16 and 2.6e-3 at K = 2, for d = 512 and a ratio of 0.96."""
    assert sampling.isotropic_standard_error(0.96, 512, 16) == pytest.approx(9.5e-4, rel=0.05)
    assert sampling.isotropic_standard_error(0.96, 512, 2) == pytest.approx(2.6e-3, rel=0.05)


def test_one_shot_has_no_sampling_law():
    for formula in (
        lambda: sampling.variance_law(1.0, 8, 1),
        lambda: sampling.isotropic_standard_error(0.5, 8, 1),
        lambda: sampling.general_standard_error(1.0, 1.0, 0.1, 0.1, 1),
        lambda: blend_error.dominates_mean(1, 8),
    ):
        with pytest.raises(InputError, match="shots = 1"):
            formula()


def test_low_dimensions_have_limits_or_errors():
    assert not blend_error.dominates_mean(16, 2)
    assert blend_error.classical_james_stein_ratio(1.0, np.array([0.1]), 2)[0] == 1
    with pytest.raises(InputError, match="d = 1"):
        blend_error.classical_james_stein_ratio(1.0, np.array([0.1]), 1)
    with pytest.raises(InputError, match="infinite below three"):
        blend_error.unclipped_risk_change(1.0, 1.0, 2, 2)
    with pytest.raises(InputError, match="at least four"):
        sampling.unbiased_trace_of_square(np.ones((3, 2)))
    with pytest.raises(InputError, match="must be positive"):
        sampling.participation_ratio(0.0, 0.0)


def test_projection_on_the_decisive_directions_has_at_most_c_minus_one_dimensions():
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(3, 10))
    parts = np.stack([decision.decisive_part(offset, prototypes) for offset in rng.normal(size=(20, 10))])
    assert np.linalg.matrix_rank(parts) == 2
    assert np.allclose(decision.decisive_part(rng.normal(size=10), np.ones((4, 10))), 0)


def test_equal_prototypes_have_no_direction_to_overlap_with():
    cosines = decision.squared_cosines(np.ones(4), np.ones((2, 4)))
    assert cosines.tolist() == [0]
    with pytest.raises(InputError, match="offset"):
        decision.squared_cosines(np.zeros(4), np.eye(4))


def test_risk_does_not_see_an_offset_orthogonal_to_the_classes():
    u, delta, offset = np.eye(3)
    near = decision.blend_error(0.4, decision.pair_geometry(u, delta, offset), 1.0)
    far = decision.blend_error(0.4, decision.pair_geometry(u, delta, 1000 * offset), 1.0)
    assert near == far


def test_shrinkage_limits():
    parallel = decision.PairGeometry(u2=1.0, delta2=0.25, gamma=0.5)
    assert decision.noise_aware_shrinkage(parallel, 0.0) == 0
    assert decision.noise_aware_shrinkage(parallel, 0.1) == 1
    backwards = decision.PairGeometry(u2=1.0, delta2=1.0, gamma=-0.8)
    assert decision.noise_aware_shrinkage(backwards, 5.0) == 0
    with pytest.raises(InputError, match="orthogonal"):
        decision.noise_aware_shrinkage(decision.PairGeometry(1.0, 1.0, 0.0, beta=0.1), 1.0)
    with pytest.raises(InputError, match="coincide"):
        decision.blend_error(1.0, decision.PairGeometry(u2=1.0, delta2=0.25, gamma=-0.5), 1.0)


def test_pooled_covariance_is_scikit_learns_oas_of_the_first_hundred_residuals_of_each_class():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(3), (9, 100, 130)))
    X = rng.normal(size=(239, 20)) + y[:, None]
    firsts = [X[y == c][:100] for c in range(3)]
    expected = OAS(assume_centered=True).fit(np.concatenate([rows - rows.mean(axis=0) for rows in firsts])).covariance_
    assert np.allclose(capacity.pooled_covariance(X, y, 3), expected)


def test_a_pool_without_spread_is_refused():
    with pytest.raises(InputError, match="images that differ"):
        capacity.pooled_covariance(np.eye(3), np.arange(3), 3)
