"""The interval and the advice of `fit` on open sets, against the accuracy on all pictures that were not drawn."""

import numpy as np
import pytest
from tools.open_pictures import draw_pictures
from tools.promises import NUMBERS, never_shown, promise

from kshot.methods import registry

BLENDS = ("zero_shot", "loo_blend", "loo_blend_kcorr")
RIVALS = (*BLENDS, "gda_alpha1", "gda_alpha_loo", "tip_adapter_loo", "fold_gda", "clap", "zs_lp", "lpp")
DATASETS = ("cifar10", "tuxpaint", "fashion-mnist")


def measured(dataset, shots, seed):
    drawn = draw_pictures(dataset, shots, seed)
    return dict(zip(NUMBERS, promise(drawn, shots) + never_shown(drawn, seed), strict=True))


def accuracies(dataset, shots, seed):
    """On new pictures, of every rival."""
    drawn = draw_pictures(dataset, shots, seed)
    return [drawn.shots.fit(registry.create(name)).score(drawn.X, drawn.y) for name in RIVALS]


@pytest.mark.slow
def test_interval_covers_and_the_advice_is_good():
    covered, gaps = [], {}
    for shots in (2, 4, 8):
        draws = [(dataset, shots, seed) for dataset in DATASETS for seed in range(5)]
        said = [measured(*one) for one in draws]
        covered += [one["low"] <= one["accuracy"] <= one["high"] for one in said]
        best = np.mean([accuracies(*one) for one in draws], axis=0).max()
        gaps[shots] = 100 * (best - np.mean([one["accuracy"] for one in said]))
    assert np.mean(covered) >= 0.9
    assert max(gaps.values()) < 1, gaps


def test_never_shown_classes_are_unsure_more_often_than_recognised_ones():
    found = [measured("fashion-mnist", 4, seed) for seed in range(3)]
    lost, never = (np.mean([one[name] for one in found]) for name in ("lost", "never_unsure"))
    assert never > 2 * lost
