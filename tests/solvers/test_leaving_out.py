"""Folds against what they promise, counted by hand."""

import numpy as np
import pytest

from kshot.solvers.folds import balanced_folds, has_siblings, ranks_by_text
from kshot.solvers.rows import shot_numbers
from problems import problem


def test_a_short_class_starts_over_and_an_only_shot_stays():
    y = np.array([0, 0, 0, 1, 1, 2])
    folds = [(kept.tolist(), asked.tolist()) for kept, asked in balanced_folds(shot_numbers(y), y)]
    assert folds == [
        ([False, True, True, False, True, True], [True, False, False, True, False, False]),
        ([True, False, True, True, False, True], [False, True, False, False, True, False]),
        ([True, True, False, False, True, True], [False, False, True, False, False, False]),
    ]
    assert has_siblings(y).tolist() == [True] * 5 + [False]


def test_only_shots_make_no_fold():
    assert list(balanced_folds(np.zeros(3, int), np.arange(3))) == []


@pytest.mark.parametrize("counts", [[4, 4, 4], [2, 5, 3, 1]])
def test_every_shot_with_a_sibling_is_asked_once_and_never_by_itself(counts):
    data = problem(classes=len(counts), counts=counts)
    for number in (shot_numbers(data.y), ranks_by_text(data.X, data.y, data.text)):
        times = np.zeros(len(data.y), int)
        for kept, asked in balanced_folds(number, data.y):
            assert not (kept & asked).any()
            left = np.bincount(data.y[~kept], minlength=len(counts))
            assert left.tolist() == [int(count > 1) for count in counts]
            times += asked
        assert times.tolist() == [int(counts[c] > 1) for c in data.y]


def test_ranks_follow_the_cosine_to_the_own_text():
    data = problem(counts=[2, 5, 3, 1, 7, 4])
    rank = ranks_by_text(data.X, data.y, data.text)
    for c in range(6):
        own = np.flatnonzero(data.y == c)
        assert own[np.argsort(-(data.X[own] @ data.text[c]))].tolist() == own[np.argsort(rank[own])].tolist()
