"""On open sets, the interval told from the shots alone against the accuracy on hundreds of other pictures."""

from dataclasses import dataclass

import numpy as np
import pytest

from kshot.data.episode import draw_support
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.methods import registry
from kshot.pictures.advice import advise
from kshot.pictures.assess import assess
from kshot.pictures.held_out import Shots

BLENDS_AND_CLOSED_FORMS = (
    "zero_shot",
    "loo_blend",
    "loo_blend_kcorr",
    "gda_alpha1",
    "gda_alpha_loo",
    "tip_adapter_loo",
)
RIVALS = (*BLENDS_AND_CLOSED_FORMS, "clap", "zs_lp", "lpp", "fold_gda")
DATASETS = ("cifar10", "tuxpaint", "fashion-mnist")


@dataclass(frozen=True)
class Draw:
    """One fit on a set whose other pictures tell the truth, for the advised head and its rivals."""

    covered: bool
    advised: float
    rivals: tuple[float, ...]


def draw(dataset: str, shots: int, seed: int) -> Draw:
    store = Store("nowhere")
    stratum, prior = load_stratum(store, dataset, "lite0"), load_prior(store, dataset, "lite0", "photo")
    rows = draw_support(dataset, stratum.pool_ids, stratum.pool.y, shots, seed)
    own = Shots(stratum.pool.X[rows], stratum.pool.y[rows], np.asarray(prior.text), stratum.constants(prior))

    def truth(method: str) -> float:
        return own.fit(registry.create(method)).score(stratum.test.X, stratum.test.y)

    advice = advise(own.counts)
    told, advised = assess(advice, own).accuracy, truth(advice.method)
    return Draw(told.low <= advised <= told.high, advised, tuple(map(truth, RIVALS)))


@pytest.mark.slow
def test_interval_covers_and_the_advice_is_good(capsys):
    draws = {shots: [draw(dataset, shots, seed) for dataset in DATASETS for seed in range(5)] for shots in (2, 4, 8)}
    gaps = {}
    for shots, own in draws.items():
        best = np.mean([one.rivals for one in own], axis=0).max()
        gaps[shots] = 100 * (best - np.mean([one.advised for one in own]))
    covered = {shots: sum(one.covered for one in own) for shots, own in draws.items()}
    with capsys.disabled():
        print(f"\ncovered of 15 by shots: {covered}; points below the best head of {len(RIVALS)}: {gaps}")
    assert sum(covered.values()) >= 0.9 * 45
    assert max(gaps.values()) < 1
