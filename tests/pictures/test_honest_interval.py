"""The interval and the advice of `fit` on open sets, against the accuracy on all pictures that were not drawn."""

import numpy as np
import pytest
from tools.open_pictures import draw_pictures
from tools.promises import promise

from kshot.methods import registry

BLENDS = ("zero_shot", "loo_blend", "loo_blend_kcorr")
RIVALS = (*BLENDS, "gda_alpha1", "gda_alpha_loo", "tip_adapter_loo", "fold_gda", "clap", "zs_lp", "lpp")
DATASETS = ("cifar10", "tuxpaint", "fashion-mnist")


def accuracies(dataset, shots, seed):
    """On new pictures, of every rival."""
    drawn = draw_pictures(dataset, shots, seed)
    return [drawn.shots.fit(registry.create(name)).score(drawn.X, drawn.y) for name in RIVALS]


@pytest.mark.slow
def test_interval_covers_and_the_advice_is_good():
    covered, gaps = [], {}
    for shots in (2, 4, 8):
        draws = [(dataset, shots, seed) for dataset in DATASETS for seed in range(5)]
        low, high, advised = np.array([promise(*one)[3:6] for one in draws], float).T
        covered += [*((low <= advised) & (advised <= high))]
        best = np.mean([accuracies(*one) for one in draws], axis=0).max()
        gaps[shots] = 100 * (best - advised.mean())
    assert np.mean(covered) >= 0.9
    assert max(gaps.values()) < 1, gaps
