"""Who records a blending ratio: reports read `lambda` as the pictures' weight, whatever the method."""

import numpy as np
import pytest

from kshot.methods import registry
from kshot.stats.selected import RATIO
from problems import SHORTER, problem


@pytest.mark.parametrize("name", registry.names())
def test_what_is_recorded_as_the_ratio_is_the_weight_of_the_pictures(name):
    data = problem()
    head = registry.create(name, **SHORTER.get(name, {}))
    head.fit(**data.evidence(head.info.sees))
    if RATIO not in head.selected_:
        return
    recorded = head.selected_[RATIO].value
    weights = []
    for c, row in enumerate(head.coef_):
        ends = np.stack([data.X[data.y == c].mean(axis=0), data.text[c]], axis=1)
        parts, *_ = np.linalg.lstsq(ends, row, rcond=None)
        np.testing.assert_allclose(ends @ parts, row, atol=1e-5)
        weights.append(parts[0] / parts.sum())
    mean = recorded["mean"] if isinstance(recorded, dict) else recorded
    assert np.mean(weights) == pytest.approx(mean, abs=1e-4)
