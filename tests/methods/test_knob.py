"""Knobs: exact leave-one-out rules against refitting, oracles against the methods that use them."""

import numpy as np
import pytest

from kshot import GDA, LogisticProbe, LOOBlend, OracleBlend, TipAdapter
from kshot.methods.base import Classifier
from kshot.methods.evidence import prepare
from kshot.methods.knob import balanced_fold_curve, leave_one_out_curve
from kshot.types import FREE_EVIDENCE, MethodInfo
from problems import problem


def task_of(method, data):
    return prepare(method.info, 2, data.X, data.y, text=data.text)


class Hidden:
    """A knob with its own leave-one-out rule taken away, so that every shot is refitted."""

    def __init__(self, method):
        self.method = method

        self.info = method.info
        self.knob_name, self.knob_grid, self.knob_curve = (method.knob_name, method.knob_grid, method.knob_curve)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", [LOOBlend(), TipAdapter(beta_points=15, alpha_points=4)], ids=["blend", "tip"])
def test_exact_rules_equal_refitting_without_each_shot(method, seed):
    data = problem(seed=seed, counts=[2, 5, 3, 2, 7, 4], noise=0.9)
    task = task_of(method, data)
    assert np.allclose(method.knob_loo_curve(task), leave_one_out_curve(Hidden(method), task))


@pytest.mark.parametrize("views", [1, 3])
def test_gda_leaves_out_a_picture_but_keeps_the_covariance(views):
    data = problem(noise=0.9, counts=[2, 5, 3, 1, 7, 4])
    rng = np.random.default_rng(0)
    V = data.X + 0.02 * rng.normal(size=(views, *data.X.shape))
    V /= np.linalg.norm(V, axis=2, keepdims=True)
    head = GDA(alpha="loo").fit(data.X, data.y, text=data.text, views=V)

    rows, y = V.reshape(-1, V.shape[2]), np.tile(data.y, views)
    means = np.stack([rows[y == c].mean(axis=0) for c in range(6)])
    Z = rows - means[y]
    M = Z.T @ Z + np.trace(Z.T @ Z) / (len(rows) - 1) * np.eye(rows.shape[1])
    P = rows.shape[1] * np.linalg.inv(M)
    expected = []
    for alpha in 10.0 ** np.arange(-4, 3):
        hits = []
        for picture in np.flatnonzero(np.bincount(data.y)[data.y] > 1):
            left = (y == data.y[picture]) & (np.tile(np.arange(len(data.y)), views) != picture)
            changed = means.copy()
            changed[data.y[picture]] = rows[left].mean(axis=0)
            for view in V[:, picture]:
                generative = changed @ P @ view - np.einsum("cd,de,ce->c", changed, P, changed) / 2
                hits.append(np.argmax(100 * data.text @ view + alpha * generative) == data.y[picture])
        expected.append(np.mean(hits))
    assert np.allclose(head.selected_["loo_accuracy"].value, expected)
    assert head.selected_["alpha"].value == pytest.approx(10.0 ** (np.argmax(expected) - 4))


def test_balanced_folds_take_one_shot_from_every_class_that_has_two():
    data = problem(seed=1, counts=[2, 5, 3, 1, 3, 4], noise=1.2)
    hits, asked = 0, 0
    ranked = []
    for c in range(6):
        rows = np.flatnonzero(data.y == c)
        ranked.append(rows[np.argsort(-data.X[rows] @ data.text[c])].tolist())
    for c, rows in enumerate(ranked):
        for place, row in enumerate(rows) if len(rows) > 1 else ():
            gone = {other[place % len(other)] for other in ranked if len(other) > 1}
            kept = np.array([i for i in range(len(data.y)) if i not in gone])
            means = np.stack([data.X[kept][data.y[kept] == k].mean(axis=0) for k in range(6)])
            blends = [r * means + (1 - r) * data.text for r in np.arange(101) / 100]
            scores = [p @ data.X[row] / np.linalg.norm(p, axis=1) for p in blends]
            hits, asked = hits + (np.argmax(scores, axis=1) == c), asked + 1
    task = prepare(LOOBlend().info, 1, data.X, data.y, text=data.text)
    found = balanced_fold_curve(LOOBlend(), task)
    assert np.allclose(found, hits / asked)
    assert not np.allclose(found, LOOBlend().knob_loo_curve(task))


def test_the_logistic_probe_already_chooses_by_folds():
    data = problem(noise=0.9)
    task = prepare(LogisticProbe().info, 2, data.X, data.y, text=None)
    assert np.allclose(balanced_fold_curve(LogisticProbe(), task), LogisticProbe().knob_loo_curve(task))


def test_the_curves_of_the_blend_give_the_choices_of_its_heads():
    data = problem(seed=4, noise=1.2, n_test=300)
    task = task_of(LOOBlend(), data)
    honest = LOOBlend().fit(data.X, data.y, text=data.text)
    oracle = OracleBlend().fit(data.X, data.y, text=data.text, test=data.test)
    grid, curve = LOOBlend().knob_grid(), LOOBlend().knob_curve(task, data.test)
    assert grid[np.argmax(leave_one_out_curve(LOOBlend(), task))] == honest.selected_["lambda"].value
    assert grid[np.argmax(curve)] == oracle.selected_["lambda"].value
    assert curve.max() == pytest.approx(oracle.score(*data.test))


def test_a_knobs_curve_is_what_refitting_at_every_value_gives():
    data = problem(noise=0.9)
    refitted = [GDA(alpha=float(a)).fit(data.X, data.y, text=data.text) for a in 10.0 ** np.arange(-4, 3)]
    expected = [head.score(*data.test) for head in refitted]
    assert np.allclose(GDA().knob_curve(task_of(GDA(), data), data.test), expected)


class Threshold(Classifier):
    """Somebody's own method: zero-shot plus a weighted class mean, the weight an ordinary parameter."""

    def __init__(self, weight: float = 1.0):
        self.weight = weight

    @property
    def info(self):
        return MethodInfo("own", "Own", FREE_EVIDENCE, 1)

    def _fit(self, task):
        self._set_linear(task.text + self.weight * task.means)

    def knob_name(self):
        return "weight"

    def knob_grid(self):
        return [0.0, 0.5, 1.0, 4.0]

    def knob_curve(self, task, queries):
        heads = [Threshold(weight) for weight in self.knob_grid()]
        return np.array([head.fit(task.X, task.y, text=task.text).score(*queries) for head in heads])


def test_somebodys_own_method_is_refitted_without_each_shot():
    data = problem(noise=0.9, shots=3)
    by_hand = [
        np.mean(
            [
                Threshold(weight)
                .fit(np.delete(data.X, i, 0), np.delete(data.y, i), text=data.text)
                .predict(data.X[i : i + 1])[0]
                == data.y[i]
                for i in range(len(data.y))
            ]
        )
        for weight in (0.0, 0.5, 1.0, 4.0)
    ]
    assert np.allclose(leave_one_out_curve(Threshold(), task_of(Threshold(), data)), by_hand)
