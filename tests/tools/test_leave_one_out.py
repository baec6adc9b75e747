"""A set's rule is chosen without that set, and the variants are what they say."""

import numpy as np
import pytest
from tools.leave_one_out import BEFORE, HEAD, RIVAL, VARIANTS, Drawn, choices, dataset, family

from kshot.methods.clap import CLAP
from kshot.methods.evidence import prepare
from kshot.methods.gauss_probe import GaussProbe
from problems import problem

SCALES = {"logit_scale": 20.0, "anchor_scale": 3.0}
# One variant gains only on set a, and much; the other a little everywhere.
MEANS = {
    "a/RN50": {RIVAL: 50.0, "lucky": 80.0, "steady": 51.0},
    "a/SkyCLIP-B-32": {RIVAL: 50.0, "lucky": 80.0, "steady": 51.0},
    "b/RN50": {RIVAL: 60.0, "lucky": 59.0, "steady": 61.0},
    "c/SkyCLIP-B-32": {RIVAL: 70.0, "lucky": 69.0, "steady": 71.5},
}


def test_the_left_out_set_has_no_say_with_any_encoder():
    assert choices(MEANS, dataset) == {
        "a/RN50": "steady",
        "a/SkyCLIP-B-32": "steady",
        "b/RN50": "lucky",
        "c/SkyCLIP-B-32": "lucky",
    }


def test_nor_has_a_left_out_family():
    assert {family(place) for place in MEANS} == {"OpenAI", "aerial"}
    changed = MEANS | {"b/RN50": {RIVAL: 0.0, "lucky": 100.0, "steady": 0.0}}
    before, after = (choices(means, family)["b/RN50"] for means in (MEANS, changed))
    assert before == after


def test_the_variants_rank_as_the_heads_they_name():
    data = problem(counts=[1] * 6, noise=1.0)
    task = prepare(GaussProbe.info, 1, data.X, data.y, text=data.text, constants=SCALES)
    drawn = Drawn(task, data.test.X)
    for name, head in ((HEAD, GaussProbe(**SCALES)), (RIVAL, CLAP(**SCALES))):
        scores = head.fit(data.X, data.y, text=data.text).decision_function(data.test.X)
        assert np.corrcoef(VARIANTS[name](drawn).ravel(), scores.ravel())[0, 1] == pytest.approx(1, abs=1e-3)
    assert np.corrcoef(VARIANTS[BEFORE](drawn).ravel(), VARIANTS[HEAD](drawn).ravel())[0, 1] < 0.999
    assert all(np.isfinite(made(drawn)).all() for made in VARIANTS.values())
