"""The published signature on real features of Stanford Cars, ViT-B/32."""

import numpy as np
import pytest

from kshot.solvers.rows import class_means, unit_rows
from kshot.theory.probes.headroom import headroom_row
from kshot.theory.probes.offset import offset_row
from kshot.theory.probes.spread import spread_row
from kshot.types import Labelled


@pytest.fixture(scope="module")
def pool(cars):
    return Labelled(unit_rows(cars["train16_x"], "pool"), cars["train16_y"])


@pytest.fixture(scope="module")
def text(cars):
    return unit_rows(cars["text"], "text")


def test_most_of_the_gap_is_common_and_points_nowhere_special(pool, text):
    row = offset_row(class_means(pool.X, pool.y, len(text)), text)
    assert row["share"] == pytest.approx(0.790, abs=0.01)
    assert 0.5 < row["cos² to class differences"] / row["1/d"] < 2


def test_predicted_spread_is_within_thirty_per_cent_of_the_measured(pool, text):
    def draw(seed):
        order = np.random.default_rng(seed).permutation(len(pool.y))
        by_class = order[np.argsort(pool.y[order], kind="stable")].reshape(len(text), -1)
        rows = by_class[:, :2].ravel()
        return Labelled(pool.X[rows], pool.y[rows])

    row = spread_row(pool, text, [draw(seed) for seed in range(5)], 2)
    assert row["measured/predicted"] == pytest.approx(1, abs=0.3)
    assert row["measured SD"] > 3 * row["isotropic SD"]
    assert 15 < row["d_eff"] < 45


def test_the_path_reaches_little_more_than_half_of_the_separation(pool, text):
    row = headroom_row(pool, text)
    assert row["pairs"] == 19110
    assert 0.5 < row["path/full"] < 0.7
