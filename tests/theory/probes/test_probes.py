"""Each probe on data whose answer is known, by construction or by brute force, and on real features."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import spearmanr

from kshot.errors import InputError
from kshot.solvers.ratio_sweep import GRID
from kshot.solvers.rows import class_means, unit_rows
from kshot.theory.probes import per_class, ratio, spread
from kshot.types import Labelled
from problems import problem


def gaussian(rng, means, scale, per_class):
    y = np.repeat(np.arange(len(means)), per_class)
    return Labelled(means[y] + scale * rng.normal(size=(len(y), means.shape[1])), y)


def accuracy(rows, means, text, ratios, shift=0.0):
    """Cosine scoring, written out."""
    ratios = np.broadcast_to(ratios, len(text))[:, None]
    p = ratios * means + (1 - ratios) * text + shift
    scores = rows.X @ (p / np.linalg.norm(p, axis=1, keepdims=True)).T
    return np.mean(scores.argmax(axis=1) == rows.y)


def held_out_accuracy(support, text, ratios):
    """Leave-one-out by refitting: the shot is removed, its class mean computed again."""
    hits = 0
    for i in range(len(support.y)):
        means = class_means(support.X, support.y, len(text))
        rest = (support.y == support.y[i]) & (np.arange(len(support.y)) != i)
        means[support.y[i]] = support.X[rest].mean(axis=0)
        hits += accuracy(Labelled(support.X[i : i + 1], support.y[i : i + 1]), means, text, ratios)
    return hits / len(support.y)


def test_offset_of_a_constructed_text():
    rng = np.random.default_rng(0)
    means, delta = rng.normal(size=(2, 6, 50))
    delta -= delta.mean(axis=0)
    shared = np.zeros(50)
    shared[0] = 3
    row = ratio.offset_row(means, means + shared + delta)
    assert row["share"] == pytest.approx(9 / (9 + (delta**2).sum(axis=1).mean()))
    assert row["length"] == pytest.approx(3)
    i, j = np.triu_indices(6, 1)
    w = means[i] - means[j]
    assert row["cos² to class differences"] == pytest.approx(np.mean(w[:, 0] ** 2 / (w**2).sum(axis=1)))
    assert row["cosine to residuals"] == pytest.approx((delta[:, 0] / np.linalg.norm(delta, axis=1)).mean())
    assert row["1/d"] == 0.02


def test_class_moments_are_those_of_the_population():
    rng = np.random.default_rng(1)
    scale = np.linspace(0.02, 0.3, 12)
    means, text = rng.normal(size=(2, 1500, 12))
    found = spread.class_moments(gaussian(rng, means, scale, 8), text)
    bias = text - means
    for name, truth in (
        ("g2", (bias**2).sum(axis=1)),
        ("trace", np.full(1500, (scale**2).sum())),
        ("trace_square", np.full(1500, (scale**4).sum())),
        ("along", (bias**2 * scale**2).sum(axis=1)),
    ):
        assert getattr(found, name).mean() == pytest.approx(truth.mean(), rel=0.05)


def test_predicted_spread_meets_the_measured_one_for_gaussian_classes():
    rng = np.random.default_rng(2)
    scale = 0.3 * np.arange(1, 41) ** -0.5
    means = rng.normal(size=(30, 40)) / 6
    text = means + 1 / np.sqrt(40)
    measured = spread.measured_spread([gaussian(rng, means, scale, 3) for _ in range(60)], text)
    moments = spread.class_moments(gaussian(rng, means, scale, 40), text)
    row = spread.predicted_row(moments, 40, 3)
    assert measured / row["predicted SD"] == pytest.approx(1, abs=0.1)
    assert row["isotropic SD"] < 0.8 * measured
    assert moments.participation() == pytest.approx((scale**2).sum() ** 2 / (scale**4).sum(), rel=0.1)


def test_the_predicted_spread_needs_four_pictures_of_every_class():
    data = problem(shots=2)
    with pytest.raises(InputError, match="at least four"):
        spread.class_moments(Labelled(data.X, data.y), data.text)


def test_headroom_is_nothing_when_the_blend_already_has_the_best_direction():
    """Isotropic classes: the difference of the means is the best direction, and λ = 1 has it."""
    rng = np.random.default_rng(3)
    means = rng.normal(size=(5, 6))
    row = ratio.headroom_row(gaussian(rng, means, np.ones(6), 4000), means + rng.normal(size=(5, 6)))
    assert row["pairs"] == 10
    assert row["path/full"] == pytest.approx(1, abs=0.01)
    assert row["headroom"] == pytest.approx(0, abs=0.1)
    assert row["path error"] >= row["plane error"] >= row["full error"] > 0


def test_translation_is_scored_by_cosine_at_the_oracle_ratio():
    data = problem(seed=4)
    means = class_means(data.X, data.y, len(data.text))
    delta = (data.text - class_means(data.pool.X, data.pool.y, len(data.text))).mean(axis=0)
    row = ratio.translation_row(Labelled(data.X, data.y), data.pool, data.test, data.text)
    grid = np.linspace(0, 1, 101)
    hits = [accuracy(data.test, means, data.text, ratio) for ratio in grid]
    moved = accuracy(data.test, means, data.text, grid[np.argmax(hits)], 0.5 * delta)
    assert row["a = +0.00"] == 0
    assert row["a = +0.50"] == pytest.approx(100 * (moved - max(hits)))


def test_counterfactual_is_neutral_without_an_offset_and_recovers_a_deficit_with_one():
    data = problem(seed=5, classes=12, shots=2, noise=1.2, n_test=400)
    support = Labelled(data.X, data.y)
    centre = class_means(data.pool.X, data.pool.y, len(data.text)).mean(axis=0)
    without = data.text - (data.text.mean(axis=0) - centre)
    row = ratio.counterfactual_row(support, data.pool, data.test, without)
    assert row["recovered"] == pytest.approx(0, abs=1e-9)
    row = ratio.counterfactual_row(support, data.pool, data.test, data.text)
    assert row["deficit"] < 0
    assert row["recovered"] == pytest.approx(row["without offset"] - row["deficit"])


def test_james_stein_against_the_optimum_of_the_pool():
    data = problem(seed=6, classes=8, shots=4)
    row = ratio.optimum_row(Labelled(data.X, data.y), data.pool, data.text)
    fitted, target = [], []
    for c, t in enumerate(data.text):
        own, pool = data.X[data.y == c], data.pool.X[data.pool.y == c]
        v = own.var(axis=0, ddof=1).sum() / 4
        fitted.append(max(0, 1 - v / np.sum((t - own.mean(axis=0)) ** 2)))
        g2 = np.sum((t - pool.mean(axis=0)) ** 2)
        target.append(g2 / (g2 + pool.var(axis=0, ddof=1).sum() / 4))
    assert row["mean |difference|"] == pytest.approx(np.abs(np.subtract(fitted, target)).mean())
    assert row["Spearman"] == pytest.approx(spearmanr(fitted, target).statistic)
    assert row["mean λ*"] == pytest.approx(np.mean(target))


def test_two_objectives_against_both_curves_over_the_grid():
    data = problem(seed=8, classes=6, shots=3, noise=1.2, n_test=300)
    row = ratio.objectives_row(Labelled(data.X, data.y), data.pool, data.test, data.text)
    grid = np.linspace(0, 1, 100_001)
    g2, v = [], []
    for c, t in enumerate(data.text):
        pool = data.pool.X[data.pool.y == c]
        g2.append(np.sum((t - pool.mean(axis=0)) ** 2))
        v.append(pool.var(axis=0, ddof=1).sum() / 3)
    error = (1 - grid) ** 2 * np.mean(g2) + grid**2 * np.mean(v)
    assert row["λ of least error"] == pytest.approx(grid[error.argmin()], abs=2e-5)
    means = class_means(data.X, data.y, len(data.text))
    best = max(accuracy(data.test, means, data.text, ratio) for ratio in np.arange(101) / 100)
    lost = best - accuracy(data.test, means, data.text, row["λ of least error"])
    assert row["accuracy lost"] == pytest.approx(100 * lost)


@pytest.mark.parametrize("seed", range(4))
def test_no_single_class_can_improve_on_the_ascent(seed):
    data = problem(seed, classes=5, shots=2, noise=1.5)
    means = class_means(data.X, data.y, 5)
    ratios, reached = per_class.per_class_oracle(data.test, means, data.text)
    assert reached == pytest.approx(accuracy(data.test, means, data.text, ratios))
    assert reached >= ratio.oracle_ratio(data.test, means, data.text)[1]
    for c, value in product(range(5), GRID):
        changed = ratios.copy()
        changed[c] = value
        assert accuracy(data.test, means, data.text, changed) <= reached


def test_two_classes_reach_the_optimum_of_the_whole_grid():
    data = problem(7, classes=2, shots=2, noise=2.5, n_test=80)
    means = class_means(data.X, data.y, 2)
    brute = max(accuracy(data.test, means, data.text, np.array(pair)) for pair in product(GRID[::4], repeat=2))
    assert per_class.per_class_oracle(data.test, means, data.text)[1] >= brute - 1 / 80


def test_one_ratio_per_class_by_leave_one_out_is_held_to_one_ratio_by_leave_one_out():
    data = problem(seed=10, classes=5, shots=3, noise=1.5, n_test=200)
    support = Labelled(data.X, data.y)
    means = class_means(data.X, data.y, 5)
    held_out = [held_out_accuracy(support, data.text, ratio) for ratio in GRID]
    own = per_class.per_class_loo(support, data.text)
    assert held_out_accuracy(support, data.text, own) >= max(held_out)
    shared = GRID[np.argmax(held_out)]
    gain = 100 * (accuracy(data.test, means, data.text, own) - accuracy(data.test, means, data.text, shared))
    row = per_class.per_class_row(support, data.test, data.text)
    assert row["per-class LOO"] == pytest.approx(gain)
    assert row["in sample"] >= max(0, row["split half"], gain)
    single = Labelled(data.X[::3], data.y[::3])
    assert "per-class LOO" not in per_class.per_class_row(single, data.test, data.text)


def test_halves_share_every_class_and_no_picture():
    y = np.repeat(np.arange(5), (4, 6, 8, 10, 3))
    first, second = per_class.halves(y)
    assert sorted([*first, *second]) == list(range(len(y)))
    assert np.abs(np.bincount(y[first]) - np.bincount(y[second])).max() <= 1


def test_the_published_signature_on_stanford_cars(cars):
    """ViT-B/32: most of the gap is common and in no special direction, the spread is predicted, headroom is left."""
    pool = Labelled(unit_rows(cars["train16_x"], "pool"), cars["train16_y"])
    text = unit_rows(cars["text"], "text")
    row = ratio.offset_row(class_means(pool.X, pool.y, len(text)), text)
    assert row["share"] == pytest.approx(0.790, abs=0.01)
    assert 0.5 < row["d·cos²"] < 2

    def draw(seed):
        order = np.random.default_rng(seed).permutation(len(pool.y))
        rows = order[np.argsort(pool.y[order], kind="stable")].reshape(len(text), -1)[:, :2].ravel()
        return Labelled(pool.X[rows], pool.y[rows])

    measured, moments = spread.measured_spread(list(map(draw, range(5))), text), spread.class_moments(pool, text)
    predicted = spread.predicted_row(moments, text.shape[1], 2)
    assert measured / predicted["predicted SD"] == pytest.approx(1, abs=0.3)
    assert measured > 3 * predicted["isotropic SD"]
    assert 15 < moments.participation() < 45
    row = ratio.headroom_row(pool, text)
    assert row["pairs"] == 19110
    assert 0.5 < row["path/full"] < 0.7
