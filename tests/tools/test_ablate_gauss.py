"""What the ablations vary is the head itself, and every variant is a sum of the sides."""

import numpy as np
from tools.ablate_gauss import HEAD, VARIANTS, Parts, errors, many_shots

from kshot.methods.evidence import prepare
from kshot.methods.gauss_probe import INFO, GaussProbe
from problems import problem

SCALES = {"logit_scale": 20.0, "anchor_scale": 3.0}


def test_the_first_variant_is_the_head():
    data = problem(counts=[1, 5, 3, 2, 7, 4], noise=1.0)
    task = prepare(INFO, 1, data.X, data.y, text=data.text, constants=SCALES)
    logits = VARIANTS[HEAD](Parts(task, GaussProbe(), data.test.X))
    head = GaussProbe(**SCALES).fit(data.X, data.y, text=data.text)
    assert np.allclose(logits, head.decision_function(data.test.X))


def test_every_variant_has_its_numbers():
    data = problem(noise=1.0)
    task = prepare(INFO, 1, data.X, data.y, text=data.text, constants=SCALES)
    outcome = many_shots(task, GaussProbe(), *data.test)
    head = GaussProbe(**SCALES).fit(data.X, data.y, text=data.text)
    assert outcome.numbers[HEAD][0] == 100 * head.score(*data.test)
    assert outcome.numbers.keys() == VARIANTS.keys()
    assert np.isfinite(list(outcome.numbers.values())).all()


def test_errors_are_shares_of_the_pictures_they_name():
    hits = {
        "text": np.array([1, 1, 0, 0], bool),
        "the sum": np.array([1, 0, 1, 0], bool),
        "the probe": np.array([1, 1, 0, 0], bool),
        "fold-GDA": np.array([1, 0, 1, 0], bool),
    }
    found = errors(hits)
    assert found["exactly one of probe and fold-GDA is right"] == 50
    assert found["the sum is right where only the probe is"] == 0
    assert found["the sum is right where only fold-GDA is"] == 100
    assert found["the probe, where text is right"] == 100
    assert errors(hits | {"text": np.ones(4, bool)})["the sum, where text is wrong"] is None
