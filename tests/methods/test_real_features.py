"""The published heads on real CLIP features of Stanford Cars, against figures measured elsewhere."""

import numpy as np
import pytest

from kshot.methods import registry


def accuracy(cars, name, shots, seed=0, **params):
    rng, y = np.random.default_rng(seed), cars["train16_y"]
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:shots] for c in range(196)])
    head = registry.create(name, **params).fit(cars["train16_x"][rows], y[rows], text=cars["text"])
    return 100 * head.score(cars["eval_x"], cars["eval_y"])


def test_gda_at_sixteen_shots(cars):
    assert accuracy(cars, "gda_alpha1", 16) == pytest.approx(77.9, abs=1.5)


def test_clap_at_one_shot(cars):
    assert accuracy(cars, "clap", 1) == pytest.approx(62.0, abs=2.0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "expected"), [("clap", 75.6), ("lpp", 76.5)])
def test_probes_at_sixteen_shots(cars, name, expected):
    assert accuracy(cars, name, 16) == pytest.approx(expected, abs=1.5)


@pytest.mark.slow
@pytest.mark.parametrize(("shots", "margin"), [(2, -1.5), (4, -1.5), (16, 2.0)])
def test_hoso_against_the_loo_blend(cars, shots, margin):
    hoso = np.mean([accuracy(cars, "hoso", shots, seed, seed=seed) for seed in range(5)])
    blend = np.mean([accuracy(cars, "loo_blend", shots, seed) for seed in range(5)])
    assert hoso >= blend + margin
