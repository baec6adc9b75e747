"""Hits at every weight against trying them one by one, on whole numbers so that ties are real."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kshot.solvers.ratio_sweep import hits_by_weight

WEIGHTS = 2.0 ** np.arange(-3, 4)


@given(st.data(), st.integers(1, 30), st.integers(2, 6))
def test_hits_are_those_of_the_first_best_class(data, n, classes):
    scores = arrays(np.float64, (n, classes), elements=st.integers(-3, 3).map(float))
    base, extra = data.draw(scores), data.draw(scores)
    y = data.draw(arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    one_by_one = [
        sum(max(range(classes), key=lambda c: base[i, c] + w * extra[i, c]) == y[i] for i in range(n)) for w in WEIGHTS
    ]
    assert hits_by_weight(base, extra, WEIGHTS, y).tolist() == one_by_one
