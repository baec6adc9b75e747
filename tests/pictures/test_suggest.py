"""Which pictures to label next: against brute force, and on a folder."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from colours import shade
from kshot.errors import InputError
from kshot.pictures.suggest import NOISE, most_useful, suggest_files, unlabelled_files


def test_each_choice_shrinks_the_weighted_variance_most():
    rng = np.random.default_rng(0)
    X, seen, weights = rng.normal(size=(40, 15)), rng.normal(size=(6, 15)), rng.random(40)
    rows = np.vstack([X, seen]) - np.vstack([X, seen]).mean(axis=0)
    rows /= np.sqrt((rows**2).sum(axis=1).mean())
    precision, G = NOISE * np.eye(15) + rows[40:].T @ rows[40:], (rows[:40].T * weights) @ rows[:40]
    chosen = []
    for _ in range(7):
        left = {n: precision + np.outer(rows[n], rows[n]) for n in range(40) if n not in chosen}
        best = min(left, key=lambda n: np.trace(np.linalg.solve(left[n], G)))
        chosen, precision = [*chosen, best], left[best]
    assert most_useful(X, seen, weights, 7) == chosen


def test_all_are_chosen_once_where_more_are_asked_for():
    X = np.random.default_rng(1).normal(size=(5, 3))
    assert sorted(most_useful(X, X[:2], np.ones(5), 9)) == [0, 1, 2, 3, 4]


def test_a_folder_is_searched_for_what_is_new_and_unlike_the_shots(shades, fit, colours, tmp_path):
    """Three pictures of a colour that no shot has, and many like the shots."""
    rng, new = np.random.default_rng(2), tmp_path / "new"
    for number in range(10):
        shade(new / "deep" / f"red-{number}.png", "red", rng)
    for number in range(3):
        shade(new / f"odd-{number}.png", "green", rng, sigma=400)
    (new / "broken.png").write_bytes(b"nothing")
    shutil.copy(shades / "blue" / "0.png", new / "seen.png")
    shutil.copy(new / "odd-0.png", new / "twin.png")
    head = fit(shades).head
    found = suggest_files(head, unlabelled_files(new), 3, colours)
    assert len({one.picture for one in found.chosen}) == 3
    names = [Path(one.picture).name for one in found.chosen]
    assert any("odd" in name for name in names[:2])
    assert not {"seen.png", "broken.png", "twin.png"} & {*names}
    assert (found.known, len(found.unreadable)) == (1, 1)
    assert all(len(one.top) == 2 for one in found.chosen)


def test_nothing_to_choose_from_is_said(shades, fit, colours, tmp_path):
    with pytest.raises(InputError, match="holds no pictures to choose from"):
        unlabelled_files(tmp_path / "nowhere")
    head = fit(shades).head
    with pytest.raises(InputError, match="one at least"):
        suggest_files(head, [], 0, colours)
    assert suggest_files(head, unlabelled_files(shades), 3, colours).known == 12
