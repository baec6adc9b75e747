"""float32 and float64 give the same accuracy."""

import numpy as np
import pytest

from kshot.methods import registry
from problems import SHORTER, problem

WORLDS = [
    {"seed": 1, "classes": 10, "shots": 4, "dim": 64, "noise": 0.9},
    {"seed": 2, "classes": 25, "shots": 2, "dim": 32, "noise": 0.7},
    {"seed": 3, "classes": 5, "shots": 16, "dim": 128, "noise": 1.2},
]


@pytest.mark.parametrize("name", [name for name in registry.names() if name != "hoso"])
@pytest.mark.parametrize("world", WORLDS, ids=["ten", "many", "wide"])
def test_accuracy_does_not_depend_on_the_dtype(name, world):
    data = problem(**world, n_test=2000)
    accuracy = []
    for dtype in (np.float32, np.float64):
        cast = data.cast(dtype)
        method = registry.create(name, **SHORTER.get(name, {}))
        accuracy.append(method.fit(**cast.evidence(method.info.sees)).score(*cast.test))
    assert accuracy[0] == pytest.approx(accuracy[1], abs=0.001)
