"""A set's rule is chosen without that set, and the variants are what they say."""

import numpy as np
import pytest
from tools.leave_one_out import HEAD, MORE_SHOTS, ONE_SHOT, RIVAL, Drawn, chosen_without

from kshot.methods.clap import CLAP
from kshot.methods.evidence import prepare
from kshot.methods.gauss_probe import GaussProbe
from problems import problem

SCALES = {"logit_scale": 20.0, "anchor_scale": 3.0}
# One variant gains only on set a, and much; the other a little everywhere.
MEANS = {
    "a": {RIVAL: 50.0, "lucky": 80.0, "steady": 51.0},
    "b": {RIVAL: 60.0, "lucky": 59.0, "steady": 61.0},
    "c": {RIVAL: 70.0, "lucky": 69.0, "steady": 71.5},
    "d": {RIVAL: 65.0, "lucky": 64.0, "steady": 66.0},
}


def test_the_left_out_set_has_no_say():
    assert chosen_without(MEANS, "a", [RIVAL, "lucky", "steady"]) == "steady"
    assert chosen_without(MEANS, "b", [RIVAL, "lucky", "steady"]) == "lucky"
    changed = MEANS | {"b": {RIVAL: 0.0, "lucky": 100.0, "steady": 0.0}}
    assert chosen_without(changed, "b", [RIVAL, "lucky", "steady"]) == chosen_without(
        MEANS, "b", [RIVAL, "lucky", "steady"]
    )


def test_by_the_lower_end_a_gain_on_one_set_is_not_enough():
    assert chosen_without(MEANS, "b", ["lucky", "steady"], cautious=True) == "steady"


@pytest.mark.parametrize(("counts", "variants"), [([1] * 6, ONE_SHOT), ([2] * 6, MORE_SHOTS)])
def test_the_variants_rank_as_the_heads_they_name(counts, variants):
    data = problem(counts=counts, noise=1.0)
    task = prepare(GaussProbe.info, 1, data.X, data.y, text=data.text, constants=SCALES)
    drawn = Drawn(task, data.test.X)
    for name, head in ((HEAD, GaussProbe(**SCALES)), (RIVAL, CLAP(**SCALES))):
        scores = head.fit(data.X, data.y, text=data.text).decision_function(data.test.X)
        assert np.corrcoef(variants[name](drawn).ravel(), scores.ravel())[0, 1] == pytest.approx(1, abs=1e-6)
    assert all(np.isfinite(made(drawn)).all() for made in variants.values())
