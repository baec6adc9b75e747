"""The logistic probe's folds against scikit-learn, fold by fold from nothing."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from kshot.solvers.folds import balanced_folds
from kshot.solvers.logistic import left_out_accuracies, logistic_path
from kshot.solvers.rows import shot_numbers

STRENGTHS = 10.0 ** np.arange(-2, 5)


def overlapping(dim, seed, classes=6, shots=6):
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(classes), shots)
    X = rng.standard_normal((classes, dim))[y] + 0.5 * np.sqrt(dim) * rng.standard_normal((len(y), dim))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y


@pytest.mark.parametrize("dim", [10, 120], ids=["more rows than dimensions", "fewer"])
@pytest.mark.parametrize("seed", range(3))
def test_warm_folds_answer_as_folds_learnt_from_nothing(dim, seed):
    X, y = overlapping(dim, seed)
    folds = list(balanced_folds(shot_numbers(y), y))
    path = logistic_path(X, y, 6, STRENGTHS, tolerance=1e-3, max_iterations=300)
    curve = left_out_accuracies(X, y, STRENGTHS, path, folds)
    expected = np.zeros(len(STRENGTHS))
    for kept, asked in folds:
        for index, strength in enumerate(STRENGTHS):
            model = LogisticRegression(C=strength, tol=1e-6, max_iter=5000).fit(X[kept].astype(float), y[kept])
            expected[index] += np.count_nonzero(model.predict(X[asked]) == y[asked]) / len(y)
    # One or two of 36 rows may lie on a border; what the folds leave out must not have been learnt.
    assert np.abs(curve - expected).max() <= 2.5 / len(y)
    assert abs(np.mean(curve - expected)) <= 1 / len(y)
    own = np.mean((X @ path[-1][:, :-1].T + path[-1][:, -1]).argmax(axis=1) == y)
    assert own == 1.0
    assert curve.max() < 0.9
