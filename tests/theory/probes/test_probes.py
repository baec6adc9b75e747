"""Each probe on data whose answer is known, by construction or by brute force."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from kshot.errors import InputError
from kshot.solvers.rows import class_means
from kshot.theory.probes import agreement, counterfactual, headroom, objectives, offset, per_class, spread, translation
from kshot.types import Labelled
from problems import problem


def gaussian(rng, means, scale, per_class):
    y = np.repeat(np.arange(len(means)), per_class)
    return Labelled(means[y] + scale * rng.normal(size=(len(y), means.shape[1])), y)


def test_offset_of_a_constructed_text():
    rng = np.random.default_rng(0)
    means, delta = rng.normal(size=(2, 6, 50))
    delta -= delta.mean(axis=0)
    shared = np.zeros(50)
    shared[0] = 3
    row = offset.offset_row(means, means + shared + delta)
    assert row["share"] == pytest.approx(9 / (9 + (delta**2).sum(axis=1).mean()))
    assert row["length"] == pytest.approx(3)
    i, j = np.triu_indices(6, 1)
    w = means[i] - means[j]
    assert row["cos² to class differences"] == pytest.approx(np.mean(w[:, 0] ** 2 / (w**2).sum(axis=1)))
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
    supports = [gaussian(rng, means, scale, 3) for _ in range(60)]
    row = spread.spread_row(gaussian(rng, means, scale, 40), text, supports, 3)
    assert row["measured/predicted"] == pytest.approx(1, abs=0.1)
    assert row["isotropic SD"] < 0.8 * row["measured SD"]
    assert row["d_eff"] == pytest.approx((scale**2).sum() ** 2 / (scale**4).sum(), rel=0.1)


def test_spread_needs_a_pool():
    data = problem(shots=2)
    support = Labelled(data.X, data.y)
    with pytest.raises(InputError, match="takes four"):
        spread.spread_row(support, data.text, [support, support], 2)


def test_headroom_is_nothing_when_the_blend_already_has_the_best_direction():
    """Isotropic classes: the difference of the means is the best direction, and λ = 1 has it."""
    rng = np.random.default_rng(3)
    means = rng.normal(size=(5, 6))
    row = headroom.headroom_row(gaussian(rng, means, np.ones(6), 4000), means + rng.normal(size=(5, 6)))
    assert row["pairs"] == 10
    assert row["path/full"] == pytest.approx(1, abs=0.01)
    assert row["headroom"] == pytest.approx(0, abs=0.1)
    assert row["path error"] >= row["plane error"] >= row["full error"] > 0


def test_translation_by_nothing_changes_nothing_and_by_something_is_scored_by_cosine():
    data = problem(seed=4)
    means = class_means(data.X, data.y, len(data.text))
    population = class_means(data.pool.X, data.pool.y, len(data.text))
    rows = translation.translation_rows(data.test, means, data.text, population)
    at = {row["a"]: row for row in rows}
    assert at[0.0]["change"] == 0
    ratios = np.linspace(0, 1, 101)
    hits = []
    for a in (0.0, 0.5):
        for ratio in ratios:
            p = ratio * means + (1 - ratio) * data.text + a * (data.text - population).mean(axis=0)
            cosine = data.test.X @ (p / np.linalg.norm(p, axis=1, keepdims=True)).T
            hits.append(100 * np.mean(cosine.argmax(axis=1) == data.test.y))
    best = int(np.argmax(hits[:101]))
    assert at[0.0]["accuracy"] == pytest.approx(hits[best])
    assert at[0.5]["accuracy"] == pytest.approx(hits[101 + best])


def test_counterfactual_is_neutral_without_an_offset_and_telling_with_one():
    data = problem(seed=5, classes=12, shots=2, noise=1.2, n_test=400)
    support = Labelled(data.X, data.y)
    centre = class_means(data.pool.X, data.pool.y, len(data.text)).mean(axis=0)
    without = data.text - (data.text.mean(axis=0) - centre)
    row = counterfactual.counterfactual_row(support, data.pool, data.test, without)
    assert row["recovered"] == pytest.approx(0, abs=1e-9)
    row = counterfactual.with_share(counterfactual.counterfactual_row(support, data.pool, data.test, data.text))
    assert row["deficit"] < 0
    assert row["recovered"] == pytest.approx(row["without offset"] - row["deficit"])
    assert row["share of damage"] == pytest.approx(-row["recovered"] / row["deficit"])


def test_james_stein_against_the_optimum_of_the_pool():
    data = problem(seed=6, classes=8, shots=4)
    row = agreement.optimum_row(Labelled(data.X, data.y), data.pool, data.text)
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
    support = Labelled(data.X, data.y)
    row = objectives.objectives_row(support, data.pool, data.test, data.text)
    grid = np.linspace(0, 1, 100_001)
    g2, v = [], []
    for c, t in enumerate(data.text):
        pool = data.pool.X[data.pool.y == c]
        g2.append(np.sum((t - pool.mean(axis=0)) ** 2))
        v.append(pool.var(axis=0, ddof=1).sum() / 3)
    error = (1 - grid) ** 2 * np.mean(g2) + grid**2 * np.mean(v)
    assert row["λ of least error"] == pytest.approx(grid[error.argmin()], abs=2e-5)
    means = class_means(data.X, data.y, len(data.text))

    def accuracy(ratio):
        p = ratio * means + (1 - ratio) * data.text
        cosine = data.test.X @ (p / np.linalg.norm(p, axis=1, keepdims=True)).T
        return 100 * np.mean(cosine.argmax(axis=1) == data.test.y)

    best = max(accuracy(ratio) for ratio in np.arange(101) / 100)
    assert row["accuracy lost"] == pytest.approx(best - accuracy(row["λ of least error"]))


def test_the_offsets_cosine_to_the_remainders():
    rng = np.random.default_rng(9)
    means, text = rng.normal(size=(2, 5, 30))
    offset_vector = (text - means).mean(axis=0)
    remainders = text - means - offset_vector
    cosines = remainders @ offset_vector / np.linalg.norm(remainders, axis=1) / np.linalg.norm(offset_vector)
    assert offset.offset_row(means, text)["cosine to residuals"] == pytest.approx(cosines.mean())


def test_one_ratio_per_class_by_leave_one_out_is_held_to_one_ratio_by_leave_one_out():
    data = problem(seed=10, classes=5, shots=3, noise=1.5, n_test=200)
    support = Labelled(data.X, data.y)
    means = class_means(data.X, data.y, 5)

    def accuracy(ratios, rows, centres):
        p = ratios[:, None] * centres + (1 - ratios[:, None]) * data.text
        cosine = rows.X @ (p / np.linalg.norm(p, axis=1, keepdims=True)).T
        return np.mean(cosine.argmax(axis=1) == rows.y)

    held_out = []
    for ratio in np.arange(101) / 100:
        hits = 0
        for i in range(len(data.y)):
            centres = means.copy()
            rest = (data.y == data.y[i]) & (np.arange(len(data.y)) != i)
            centres[data.y[i]] = data.X[rest].mean(axis=0)
            hits += accuracy(np.full(5, ratio), Labelled(data.X[i : i + 1], data.y[i : i + 1]), centres)
        held_out.append(hits)
    shared = np.full(5, np.argmax(held_out) / 100)
    own = per_class.per_class_loo(support, data.text)
    gain = 100 * (accuracy(own, data.test, means) - accuracy(shared, data.test, means))
    row = per_class.per_class_row(support, data.test, data.text)
    assert row["per-class LOO"] == pytest.approx(gain)
    single = Labelled(data.X[::3], data.y[::3])
    assert "per-class LOO" not in per_class.per_class_row(single, data.test, data.text)
