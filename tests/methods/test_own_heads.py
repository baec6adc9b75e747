"""What a head of one's own is told when it forgets or oversteps something."""

import pydoc
import re
from pathlib import Path

import numpy as np
import pytest

import kshot
from kshot.errors import EvidenceError, InputError
from kshot.extend import Classifier, MethodInfo
from problems import HEADS, problem

INFO = MethodInfo("mine", "Mine")


def fitted(head):
    data = problem()
    return head().fit(**data.evidence(head.info.sees))


def head_that(*lines, info=INFO, **more):
    """A head whose `_fit` is this function."""

    def _fit(self, task):
        for line in lines:
            line(self, task)

    return type("Mine", (Classifier,), {"info": info, "_fit": _fit, **more})


@pytest.mark.parametrize("name", ["test", "validation", "few_shot_validation", "pool", "queries"])
def test_undeclared_evidence_is_refused_where_it_is_read(name):
    peeks = head_that(lambda self, task: getattr(task, name))
    with pytest.raises(EvidenceError, match=rf"mine reads task\.{name} .*sees=frozenset\(\{{.*\"{name}\".*\}}\)"):
        fitted(peeks)


@pytest.mark.parametrize(("sees", "name"), [("text", "X"), ("text", "y"), ("text", "means"), ("support", "text")])
def test_undeclared_shots_and_text_are_refused(sees, name):
    least = 1 if sees == "support" else 0
    info = MethodInfo("mine", "Mine", frozenset({sees}), least)
    with pytest.raises(EvidenceError, match="declare"):
        fitted(head_that(lambda self, task: getattr(task, name), info=info))


@pytest.mark.parametrize(
    ("lines", "info", "says"),
    [
        ((), INFO, r"call self\._set_linear\(weights, bias\)"),
        ([lambda self, task: self._set_linear(task.text[:-1])], INFO, r"no weights of shape \(6, 24\)"),
        ([lambda self, task: None], MethodInfo("mine", "Mine", linear=False), r"needs a _scores\(self, X\)"),
    ],
)
def test_a_forgotten_result_is_named_with_file_and_line(lines, info, says):
    here = rf"Mine\._fit \(.*{Path(__file__).name}:\d+\)"
    with pytest.raises(InputError, match=rf"(?s){here}.*{says}"):
        fitted(head_that(*lines, info=info))


def test_a_forgotten_array_to_read_the_dimension_from_is_named():
    info = MethodInfo("mine", "Mine", linear=False)
    forgetful = head_that(info=info, _scores=lambda self, X: X, _like_data="rows_")
    with pytest.raises(InputError, match=r"no array 'rows_'.*_like_data"):
        fitted(forgetful)


def test_a_class_without_info_is_told_so():
    bare = type("Bare", (Classifier,), {"_fit": lambda self, task: None})
    with pytest.raises(InputError, match=r"Bare has no info. Write info = MethodInfo\(key='bare'"):
        bare().fit([[1.0]], [0])


@pytest.mark.parametrize("name", ["X", "y", "text"])
def test_evidence_cannot_be_changed(name):
    def overwrite(self, task):
        getattr(task, name)[0] = 0

    with pytest.raises(ValueError, match="read-only"):
        fitted(head_that(overwrite))


@pytest.mark.parametrize("name", HEADS)
def test_help_of_every_head_shows_its_parameters(name):
    text = pydoc.plain(pydoc.render_doc(HEADS[name]))
    (section,) = re.findall(
        r"Parameters\n.*?----------\n(.*?)Attributes", text.partition("Methods")[0] + "Attributes", re.S
    )
    for parameter in HEADS[name]().get_params():
        assert re.search(rf"\b{parameter} : ", section), parameter


@pytest.mark.parametrize("given", [{"parameter": 4.6052}, {"constants": 4.6052}, {"constants": 10.0}])
def test_the_logarithm_of_the_scale_is_refused(given):
    data = problem()
    head = kshot.CLAP(logit_scale=given.get("parameter"))
    constants = {"logit_scale": given["constants"]} if "constants" in given else None
    with pytest.raises(InputError, match=r"logarithm.*exp\((4\.6052|10)\) = (100|2\.203)"):
        head.fit(data.X, data.y, text=data.text, constants=constants)
    shots = data.X, data.y
    with pytest.raises(InputError, match="logarithm"):
        kshot.Features.from_arrays("a", pool=shots, test=shots, text=data.text, constants={"logit_scale": 4.6052})


def test_any_scale_of_an_encoder_is_taken():
    from kshot.types import EncoderConstants

    data = problem()
    head = kshot.ZeroShot().fit(text=data.text, constants=EncoderConstants(logit_scale=4.6))
    assert head.selected_["logit_scale"].value == pytest.approx(4.6)
    assert np.allclose(head.scores(data.X), 4.6 * data.X @ data.text.T)


@pytest.mark.parametrize(("turned", "warns"), [(0, False), (1, True)])
def test_text_in_another_order_is_said_once(turned, warns, caplog):
    data = problem(seed=5, shots=6)
    for _ in range(2):
        kshot.GDA().fit(data.X, data.y, text=np.roll(data.text, turned, axis=0))
    assert len(caplog.records) == warns
    if warns:
        assert "text and labels may not belong together" in caplog.text
