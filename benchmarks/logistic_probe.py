"""The logistic probe's choice of strength, folds warm-started, against learning every fold's path from nothing."""

import numpy as np

from benchmarks.data import Data, data, noisy
from benchmarks.measure import alternate, verdict
from kshot.methods.logistic_probe import MOST_SCORED, STRENGTHS, LogisticProbe
from kshot.solvers.folds import balanced_folds
from kshot.solvers.logistic import left_out_accuracies, logistic_path
from kshot.solvers.rows import shot_numbers


def every_path_from_nothing(problem: Data) -> float:
    """The strength that all folds prefer, each learnt alone."""
    limits = {"tolerance": 1e-3, "max_iterations": 300}
    hits = np.zeros(len(STRENGTHS))
    for kept, asked in balanced_folds(shot_numbers(problem.y), problem.y):
        path = logistic_path(problem.X[kept], problem.y[kept], len(problem.text), STRENGTHS, **limits)
        for index, w in enumerate(path):
            told = (problem.X[asked] @ w[:, :-1].T + w[:, -1]).argmax(axis=1)
            hits[index] += np.count_nonzero(told == problem.y[asked])
    return float(STRENGTHS[hits.argmax()])


def warm_folds(problem: Data, path: np.ndarray) -> float:
    """As the method does it, with the path of all shots, which it needs anyway."""
    folds = balanced_folds(shot_numbers(problem.y), problem.y, MOST_SCORED)
    curve = left_out_accuracies(problem.X, problem.y, STRENGTHS, path, folds)
    return float(STRENGTHS[curve.argmax()])


def main() -> int:
    problem = noisy(data(200, 16), 2.5)
    path = logistic_path(problem.X, problem.y, len(problem.text), STRENGTHS, tolerance=1e-3, max_iterations=300)
    ratio, chosen, expected, _ = alternate(
        lambda: warm_folds(problem, path), lambda: every_path_from_nothing(problem), repeats=1
    )
    print(f"strength {chosen:g} by warm folds, {expected:g} by all folds from nothing")
    for strength in {chosen, expected}:
        fixed = LogisticProbe(tune="fixed", strength=strength).fit(problem.X, problem.y)
        accuracy = fixed.score(problem.queries, problem.labels)
        assert accuracy > 2 / len(problem.text), "it learnt nothing"
        print(f"  accuracy at {strength:g}: {100 * accuracy:.1f} %")
    return verdict("Folds of the logistic probe, C=200, K=16, d=512", ratio, 6)
