"""The noise of other draws against simulation, and the rate of false alarms."""

import numpy as np
import pytest

from kshot.stats.draw_noise import AGREES, CANNOT_TELL, DIFFERS, DrawNoise, draw_noise, judge

DATASETS, SEEDS, CELLS = 4, 5, 6


def layout(seeds=SEEDS):
    dataset, seed, cell = (axis.reshape(-1) for axis in np.indices((DATASETS, seeds, CELLS)))
    return dataset, seed, dataset * CELLS + cell


def draws(rng, seeds=SEEDS):
    """True accuracies, plus luck that all cells of a draw share, plus luck of the cell."""
    dataset, seed, stratum = layout(seeds)
    luck = (1 + np.arange(DATASETS))[:, None] * rng.normal(size=(DATASETS, seeds))
    return 10.0 * stratum + luck[dataset, seed] + rng.normal(size=len(stratum))


def noise_of(values, seeds=SEEDS):
    dataset, seed, stratum = layout(seeds)
    return draw_noise(values, np.full(len(values), 1 / len(values)), stratum, dataset, seed)


def test_the_noise_is_the_variance_over_other_draws():
    rng = np.random.default_rng(0)
    means, noises = zip(
        *((values.mean(), noise_of(values)) for values in (draws(rng) for _ in range(2000))), strict=True
    )
    assert np.mean([noise.variance for noise in noises]) == pytest.approx(np.var(means), rel=0.1)
    # One dataset has most of the luck: nearer to its four degrees of freedom than to all sixteen.
    assert 4 < np.median([noise.freedom for noise in noises]) < 14


def test_runs_without_faults_differ_in_at_most_one_pair_of_twenty():
    rng, comparisons = np.random.default_rng(1), 10
    alarms = 0
    for _ in range(400):
        pairs = ((draws(rng), draws(rng)) for _ in range(comparisons))
        alarms += any(
            judge(b.mean() - a.mean(), noise_of(a) + noise_of(b), comparisons).verdict == DIFFERS for a, b in pairs
        )
    # 5 % and two and a half standard errors.
    assert alarms <= 31


def test_a_dataset_with_few_draws_borrows_from_the_others():
    values = draws(np.random.default_rng(2))
    dataset, seed, stratum = layout()
    few = (dataset < 3) | (seed < 2)
    keep = [axis[few] for axis in (values, stratum, dataset, seed)]
    weights = np.full(len(keep[0]), 1 / len(keep[0]))
    shares = np.array([weights[keep[2] == name].sum() for name in range(4)])
    alone = keep[2] < 3
    own = draw_noise(keep[0][alone], weights[alone], *(axis[alone] for axis in keep[1:]))
    assert draw_noise(keep[0], weights, *keep[1:]).variance == pytest.approx(
        own.variance * (shares**2).sum() / (shares[:3] ** 2).sum()
    )
    assert np.isnan(noise_of(draws(np.random.default_rng(3), 2), 2).variance)


@pytest.mark.parametrize(
    ("difference", "variance", "verdict"),
    [(0.0, 0.0, AGREES), (0.3, 0.0, DIFFERS), (0.3, 0.04, AGREES), (0.3, 1.0, CANNOT_TELL), (9.0, 1.0, DIFFERS)],
)
def test_verdicts(difference, variance, verdict):
    assert judge(difference, DrawNoise(variance, 30.0), 1).verdict == verdict


def test_unknown_noise_cannot_tell():
    assert judge(5.0, DrawNoise(float("nan"), 1.0), 3).verdict == CANNOT_TELL


def test_noise_by_hand():
    """Two datasets of one stratum and three draws each: deviations −1, 0, 1 and −2, −2, 4, a sixth of each."""
    values, ones = np.array([1.0, 2, 3, 0, 0, 6]), np.full(6, 1 / 6)
    dataset, seed = np.repeat([0, 1], 3), np.tile([4, 5, 6], 2)
    small, large = 1.5 * 2 / 36, 1.5 * 24 / 36
    found = draw_noise(values, ones, dataset, dataset, seed)
    assert found.variance == pytest.approx(small + large)
    assert found.freedom == pytest.approx((small + large) ** 2 / (small**2 / 2 + large**2 / 2))
    assert draw_noise(np.ones(6), ones, dataset, dataset, seed) == (0, 4)
    # Unequal weights: the stratum's own mean is weighted too.
    weights = np.array([0.2, 0.2, 0.6])
    moved = weights * (np.array([1.0, 2, 3]) - 2.4)
    lone = draw_noise(values[:3], weights, dataset[:3], dataset[:3], seed[:3])
    assert lone.variance == pytest.approx(1.5 * moved @ moved)


def test_noise_adds_by_satterthwaites_rule():
    one, two = DrawNoise(0.03, 4.0), DrawNoise(0.05, 6.0)
    assert one + two == pytest.approx((0.08, 0.08**2 / (0.03**2 / 4 + 0.05**2 / 6)))
    assert DrawNoise(0.0, 4.0) + DrawNoise(0.0, 6.0) == (0.0, 10.0)


@pytest.mark.parametrize("comparisons", [1, 3])
def test_the_limit_is_students_at_sidaks_level(comparisons):
    from scipy.stats import t

    limit = t.ppf((1 + 0.95 ** (1 / comparisons)) / 2, 7)
    for sign in (1, -1):
        below, above = (
            judge(sign * share * limit * 0.1, DrawNoise(0.01, 7.0), comparisons) for share in (0.999, 1.001)
        )
        assert (below.verdict, above.verdict) == (AGREES, DIFFERS)
        assert below.z == pytest.approx(0.999 * sign * limit)
        assert below.error == pytest.approx(0.1)
    hidden, seen = (judge(0.0, DrawNoise((share / limit) ** 2, 7.0), comparisons).verdict for share in (1.001, 0.999))
    assert (hidden, seen) == (CANNOT_TELL, AGREES)
    assert judge(0.0, DrawNoise(0.0, 7.0), 0) == (1e-6, 0.0, AGREES)


def test_a_stratum_that_does_not_count_adds_no_noise():
    values, weights = np.array([1.0, 2.0, 4.0, 9.0, 9.5, 7.0]), np.array([1.0, 1, 1, 0, 0, 0]) / 3
    stratum, seed = np.repeat([0, 1], 3), np.tile(np.arange(3), 2)
    found = draw_noise(values, weights, stratum, np.zeros(6, int), seed)
    assert found == draw_noise(values[:3], weights[:3], stratum[:3], np.zeros(3, int), seed[:3])
