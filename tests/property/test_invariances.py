"""Scores do not depend on the numbers of classes or the axes of the feature space."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshot.methods import registry
from problems import SHORTER, Problem, problem

EVERY = registry.names()
ROTATABLE = [name for name in EVERY if registry.info(name).rotation_free]

# Drawn as arguments of `problem`, so that a failure prints a line and not the arrays.
problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "classes": st.integers(2, 8),
        "shots": st.integers(2, 5),
        "dim": st.integers(6, 40),
        "noise": st.floats(0.3, 1.0),
    }
)
few = settings(max_examples=6)


def scores(name: str, data: Problem, **params) -> np.ndarray:
    if name.startswith("logistic"):
        # Where L-BFGS stops depends on rounding; close to the optimum that no longer shows.
        params |= {"tolerance": 1e-6, "max_iterations": 1000}
    method = registry.create(name, **{**SHORTER.get(name, {}), **params})
    return method.fit(**data.evidence(method.info.sees)).scores(data.test.X)


def alike(name, found, expected):
    tolerance = 1e-3 if name.startswith("logistic") else 1e-6
    assert np.allclose(found, expected, atol=tolerance * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", EVERY)
@few
@given(drawn=problems, seed=st.integers(0, 100))
def test_relabelling_permutes_the_scores(name, drawn, seed):
    data = problem(**drawn)
    order = np.random.default_rng(seed).permutation(len(data.text))
    renamed = np.argsort(order)
    moved = data.sent_through(lambda rows: rows, lambda y: renamed[y], data.text[order])
    bias = np.linspace(-0.1, 0.1, len(order))
    params = [{"bias_init": b.tolist()} if name == "lpp" else {} for b in (bias, bias[order])]
    before, after = (scores(name, d, **p) for d, p in zip((data, moved), params, strict=True))
    if name.startswith("cross_modal"):
        # The texts are drawn in the order of the classes, so other names are another trajectory.
        assert np.mean(renamed[before.argmax(axis=1)] == after.argmax(axis=1)) >= 0.7
    elif name in ("clip_adapter", "hoso") and not np.allclose(after, before[:, order], atol=1e-6):
        # Rounding can switch a rectifier on, and 300 steps later that shows in the scores.
        assert np.mean(renamed[before.argmax(axis=1)] == after.argmax(axis=1)) >= 0.9
    else:
        alike(name, after, before[:, order])


@pytest.mark.parametrize("name", ROTATABLE)
@few
@given(drawn=problems, seed=st.integers(0, 100))
def test_rotating_all_features_changes_nothing(name, drawn, seed):
    data = problem(**drawn)
    dim = data.X.shape[1]
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]
    turned = data.sent_through(lambda rows: rows @ Q, lambda y: y)
    alike(name, scores(name, turned), scores(name, data))


@pytest.mark.parametrize("name", ["ncm", "zero_shot"])
@few
@given(drawn=problems, copies=st.integers(2, 4))
def test_duplicating_every_shot_leaves_the_plain_prototypes(name, drawn, copies):
    data = problem(**drawn)
    more = Problem(
        np.tile(data.X, (copies, 1)), np.tile(data.y, copies), data.text, data.pool, data.validation, data.test
    )
    alike(name, scores(name, more), scores(name, data))
