"""Sets of classes that hold the right one 95 times in 100."""

from dataclasses import replace

import numpy as np
import pytest

from kshot.pictures.assess import SET_SHARE, conformal_threshold
from kshot.pictures.fit import fit_folder
from kshot.pictures.head import PictureHead
from kshot.pictures.predict import judge_picture


@pytest.mark.parametrize("pictures", [19, 25, 40, 160])
def test_exchangeable_pictures_reach_the_threshold_as_often_as_promised(pictures):
    """Of values in random order the last is below the k-th smallest of the others with probability k/(M + 1)."""
    draws = np.random.default_rng(pictures).gamma(0.5, size=(4000, pictures + 1))
    reached = np.mean([row[-1] >= conformal_threshold(row[:-1]) for row in draws])
    expected = 1 - int((1 - SET_SHARE) * (pictures + 1) + 1e-9) / (pictures + 1)
    assert expected >= SET_SHARE
    assert reached == pytest.approx(expected, abs=0.015)


def test_too_few_pictures_promise_nothing():
    assert conformal_threshold(np.linspace(0, 1, 18)) is None
    assert conformal_threshold(np.linspace(0, 1, 19)) == 0


def test_a_prediction_names_what_reaches_the_threshold(shades, colours, tmp_path):
    head = fit_folder(shades, encoder=colours).head
    assert head.about.set_threshold is None
    assert judge_picture(head, "x", head.shots.X[0]).one_of == ()
    own = np.sort(head.probabilities(head.shots.X[:1])[0])
    for threshold, count in ((own[0], 3), (own[1], 2), (own[2], 1), (1.1, 1)):
        asked = replace(head, about=replace(head.about, set_threshold=float(threshold)))
        asked.save(tmp_path / "head.safetensors")
        said = judge_picture(PictureHead.load(tmp_path / "head.safetensors"), "x", head.shots.X[0], top=1)
        assert len(said.one_of) == count
        assert said.one_of[0] == said.top[0].name
