from itertools import product

import numpy as np
import pytest

from kshot.solvers.ratio_sweep import GRID
from kshot.solvers.rows import class_means
from kshot.theory.probes import per_class
from kshot.theory.probes.blend_scores import oracle_ratio
from kshot.types import Labelled
from problems import problem


def accuracy(rows, means, text, ratios):
    p = ratios[:, None] * means + (1 - ratios[:, None]) * text
    scores = rows.X @ (p / np.linalg.norm(p, axis=1, keepdims=True)).T
    return np.mean(scores.argmax(axis=1) == rows.y)


def held_out_accuracy(support, text, ratios):
    """Leave-one-out by refitting: the shot is removed, its class mean computed again."""
    hits = 0
    for i in range(len(support.y)):
        means = class_means(support.X, support.y, len(text))
        rest = (support.y == support.y[i]) & (np.arange(len(support.y)) != i)
        means[support.y[i]] = support.X[rest].mean(axis=0)
        one = Labelled(support.X[i : i + 1], support.y[i : i + 1])
        hits += accuracy(one, means, text, ratios)
    return hits / len(support.y)


@pytest.mark.parametrize("seed", range(4))
def test_no_single_class_can_improve_on_the_ascent(seed):
    data = problem(seed, classes=5, shots=2, noise=1.5)
    means = class_means(data.X, data.y, 5)
    ratios, reached = per_class.per_class_oracle(data.test, means, data.text)
    assert reached == pytest.approx(accuracy(data.test, means, data.text, ratios))
    assert reached >= oracle_ratio(data.test, means, data.text)[1]
    for c, value in product(range(5), GRID):
        changed = ratios.copy()
        changed[c] = value
        assert accuracy(data.test, means, data.text, changed) <= reached


def test_two_classes_reach_the_optimum_of_the_whole_grid():
    data = problem(7, classes=2, shots=2, noise=2.5, n_test=80)
    means = class_means(data.X, data.y, 2)
    brute = max(accuracy(data.test, means, data.text, np.array(pair)) for pair in product(GRID[::4], repeat=2))
    assert per_class.per_class_oracle(data.test, means, data.text)[1] >= brute - 1 / 80


def test_per_class_loo_never_lowers_held_out_accuracy_and_never_sees_test_labels():
    data = problem(3, classes=4, shots=3, noise=1.5)
    support = Labelled(data.X, data.y)
    ratios = per_class.per_class_loo(support, data.text)
    best_single = max(held_out_accuracy(support, data.text, np.full(4, lam)) for lam in GRID)
    assert held_out_accuracy(support, data.text, ratios) >= best_single


def test_halves_share_every_class_and_no_picture():
    y = np.repeat(np.arange(5), (4, 6, 8, 10, 3))
    first, second = per_class.halves(y)
    assert sorted([*first, *second]) == list(range(len(y)))
    assert np.abs(np.bincount(y[first]) - np.bincount(y[second])).max() <= 1


def test_the_row_is_in_points_over_one_ratio():
    data = problem(5, classes=4, shots=2, noise=1.5, n_test=100)
    row = per_class.per_class_row(Labelled(data.X, data.y), data.test, data.text)
    assert row["in sample"] >= 0
    assert row["in sample"] >= row["split half"]
    assert row["per-class LOO"] <= row["in sample"]
