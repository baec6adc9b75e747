"""The generated world shows the study's published signature."""

import numpy as np
import pytest

from kshot import JSBlend, OracleBlend, ZeroShot
from kshot.data.simulated import WORLDS, power_law_spectrum, sample, write
from kshot.data.store import Store

STRONG = ("sim-pets", "sim-food", "sim-scenes")


def support(drawn, shots):
    rows = np.concatenate([np.flatnonzero(drawn.pool.y == c)[:shots] for c in range(len(drawn.text))])
    return drawn.pool.X[rows], drawn.pool.y[rows]


@pytest.mark.parametrize("name", WORLDS)
def test_signature(name):
    drawn = sample(WORLDS[name])
    C = len(drawn.text)
    assert 0.25 <= ZeroShot().fit(text=drawn.text).score(*drawn.test) <= 0.90
    means = np.stack([drawn.pool.X[drawn.pool.y == c].mean(axis=0) for c in range(C)])
    gap = drawn.text - means
    residue = gap - gap.mean(axis=0)
    assert 0.74 <= 1 - np.sum(residue**2) / np.sum(gap**2) <= 0.87
    shots = (2, 4, 8, 16)
    js = [JSBlend().fit(*support(drawn, k), text=drawn.text).selected_["lambda"].value["mean"] for k in shots]
    assert np.mean(js) > 0.9
    if name in STRONG:
        oracle = [
            OracleBlend().fit(*support(drawn, k), text=drawn.text, test=drawn.test).selected_["lambda"].value
            for k in (1, *shots)
        ]
        assert np.mean(oracle) < 0.5


@pytest.mark.parametrize("participation", [2.0, 12.0, 30.0, 200.0])
def test_spectrum_has_the_participation_ratio_asked_for(participation):
    values = power_law_spectrum(256, participation)
    assert values.sum() == pytest.approx(1)
    assert values.sum() ** 2 / np.sum(values**2) == pytest.approx(participation)


def test_the_same_world_gives_the_same_files(tmp_path):
    world = WORLDS["sim-satellite"]
    for folder in ("a", "b"):
        write(world, Store(tmp_path / folder))
    first, second = (list(Store(tmp_path / folder).manifests()) for folder in ("a", "b"))
    assert first == second
    assert all(manifest.simulated for manifest in first)
