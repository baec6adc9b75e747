"""Two readings of the calibration error, against numbers one can work out by hand."""

import numpy as np
import pytest
from scipy.special import log_softmax
from tools.calibration import Judged, answers, best_scale, calibration_error, row, together


def certain(share, n=300, C=4, seed=0):
    """Logits whose softmax says 0.7, and labels that agree in so many cases."""
    y = np.random.default_rng(seed).integers(0, C, n)
    right = np.arange(n) < share * n
    told = np.where(right, y, (y + 1) % C)
    return np.log(np.where(np.eye(C)[told] == 1, 0.7, 0.1)), y


def test_the_error_is_the_gap_between_hits_and_confidence():
    z, y = certain(1.0)
    assert calibration_error(answers(z, y)) == pytest.approx(30)
    z, y = certain(0.0)
    assert calibration_error(answers(z, y)) == pytest.approx(70)


def test_draws_of_one_number_of_shots_share_their_bins():
    """One draw is right always, one in four of ten cases: together their 0.7 is what it says."""
    (sure, y), (unsure, labels) = certain(1.0), certain(0.4, seed=1)
    mixed = together([answers(sure, y), answers(unsure, labels)])
    assert len(mixed.hits) == 600
    assert mixed.hits.mean() == pytest.approx(0.7)
    assert calibration_error(mixed) <= np.mean(
        [calibration_error(answers(z, of)) for z, of in ((sure, y), (unsure, labels))]
    )


def test_the_best_scale_mends_a_wrong_temperature():
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(4000, 5)) * 2
    y = np.array([rng.choice(5, p=np.exp(p)) for p in log_softmax(logits, axis=1)])
    assert best_scale([logits / 3], [y]) == pytest.approx(3, rel=0.1)
    found = row([Judged(2, logits / 3, logits, y), Judged(2, logits / 3, logits, y)])
    as_it_is, whole, each, ours, best = found.by_shots
    assert max(whole, each, ours, best) < as_it_is / 3
    assert found.cross_entropies[0] == pytest.approx(found.cross_entropies[1], rel=0.01)
