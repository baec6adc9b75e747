"""A parameter of zero is zero, not the default."""

import numpy as np

from kshot import TaskRes
from problems import problem


def test_a_learning_rate_of_zero_learns_nothing():
    data = problem()
    head = TaskRes(lr=0.0, warmup_lr=0.0, epochs=3).fit(data.X, data.y, text=data.text)
    assert head.selected_["lr"].value == 0.0
    assert head.selected_["mean_residual"].value == 0.0
    text = data.text / np.linalg.norm(data.text, axis=1, keepdims=True)
    assert np.allclose(head.coef_, 100 * text)
