"""HOSO's held-out shot: spent on the ratio, or taught with afterwards."""

import numpy as np
import pytest

from kshot.methods.hoso import HOSO


@pytest.mark.parametrize("refit", [True, False])
def test_the_held_out_shot_teaches_the_adapter_only_when_it_is_fitted_again(refit):
    rng = np.random.default_rng(0)
    X, text = rng.normal(size=(12, 16)), rng.normal(size=(4, 16))
    y = np.repeat(np.arange(4), 3)
    other = X.copy()
    other[::3] = rng.normal(size=(4, 16))  # the first shot of each class is the one held out
    first, second = (HOSO(epochs=5, refit=refit).fit(rows, y, text=text) for rows in (X, other))
    assert np.array_equal(first.down_, second.down_) is not refit
    assert first.selected_["held_out_loss"].value != second.selected_["held_out_loss"].value
