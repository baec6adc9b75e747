"""Selectors: every way to set a knob, for every method that has one, against doing it by hand."""

import numpy as np
import pytest

from kshot import RLA, CrossModalLP, ProKeR, TaskRes
from kshot.errors import EvidenceError, InputError
from kshot.methods import registry
from kshot.methods.evidence import prepare
from kshot.methods.knob import balanced_fold_curve, held_out_curve, leave_one_out_curve
from kshot.methods.knob_survey import KnobSurvey
from kshot.methods.selectors import SELECTORS, ParameterKnob, Tuned, knob_of, scores_over_grid
from kshot.solvers.folds import balanced_folds, ranks_by_text
from problems import problem

GRID = {"beta_points": 3, "ridge_points": 4}


def task_of(method, data):
    return prepare(method.info, 1, **{"text": None, **data.evidence(method.info.sees)})


class Refitted:
    """ProKeR's knob without its closed forms."""

    def __init__(self, method):
        self.info, self.knob_grid, self.knob_curve = method.info, method.knob_grid, method.knob_curve
        self.knob_name = method.knob_name


@pytest.mark.parametrize("views", [None, 3])
def test_kernel_ridge_leaves_shots_out_exactly(views):
    data = problem(noise=0.9, counts=[2, 5, 3, 1, 3, 4])
    given = data.evidence(ProKeR().info.sees)
    if views:
        given["views"] = np.stack([data.X] * views)
    method = ProKeR(**GRID)
    task = prepare(method.info, 1, **given)
    for curve in (leave_one_out_curve, balanced_fold_curve):
        assert np.allclose(curve(method, task), curve(Refitted(method), task))


@pytest.mark.parametrize("method", [ProKeR(**GRID), CrossModalLP(iterations=60, lr=1e-3)])
def test_the_path_scores_like_a_fit_at_every_point(method):
    data = problem(noise=0.9)
    task = task_of(method, data)
    for value, scores in zip(method.knob_grid(), scores_over_grid(method, task, data.test.X), strict=True):
        head = method.knob_at(value).fit(data.X, data.y, text=data.text)
        assert np.allclose(scores, head.decision_function(data.test.X))


def test_a_survey_may_ask_some_of_the_folds():
    """Two of six folds: every class loses one shot at a time, and the curve is that of refits without them."""
    data = problem(noise=0.9, shots=6)
    method = ProKeR(**GRID)
    task = task_of(method, data)
    folds = list(balanced_folds(ranks_by_text(task.X, task.y, task.text), task.y))
    expected = held_out_curve(Refitted(method), task, [folds[1], folds[4]])
    assert np.allclose(balanced_fold_curve(method, task, most_folds=2), expected)
    assert not np.allclose(balanced_fold_curve(method, task), expected), "the other folds must matter"


KNOBS = [
    ("loo_blend", None),
    ("gda_alpha1", None),
    ("logistic_probe", None),
    ("proker", "ridge"),
    ("ape", "gamma"),
    ("taskres", "alpha"),
    ("transclip_aligned", None),
]


@pytest.mark.parametrize(("name", "knob"), KNOBS)
@pytest.mark.parametrize("by", ["few_shot_validation", "validation", "test"])
def test_a_choice_by_labels_is_the_best_of_all_fits(name, knob, by):
    data = problem(noise=1.0)
    tuned = Tuned(method=name, knob=knob, by=by)
    evidence = data.evidence(tuned.info.sees)
    tuned.fit(**evidence)
    knob = knob_of(registry.create(name), knob)
    task = task_of(registry.create(name), data)
    rows, labels = evidence[by]
    by_hand = [np.mean(s.argmax(axis=1) == labels) for s in scores_over_grid(knob, task, rows)]
    assert tuned.selected_["curve"].value == pytest.approx(by_hand)
    assert tuned.selected_[knob.knob_name()].value == knob.knob_grid()[int(np.argmax(by_hand))]
    assert tuned.selected_[knob.knob_name()].from_ == by
    head = knob.knob_at(knob.knob_grid()[int(np.argmax(by_hand))]).fit(**data.evidence(registry.create(name).info.sees))
    assert np.allclose(tuned.decision_function(data.test.X), head.decision_function(data.test.X))


def test_the_ensemble_averages_probabilities_and_chooses_nothing():
    data = problem(noise=1.0)
    tuned = Tuned(method="taskres", knob="alpha", by="ensemble").fit(data.X, data.y, text=data.text)
    expected = np.zeros((60, 6))
    for alpha in TaskRes.grids["alpha"]:
        logits = TaskRes(alpha=alpha).fit(data.X, data.y, text=data.text).decision_function(data.test.X)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        expected += shares / shares.sum(axis=1, keepdims=True) / 2
    assert np.allclose(tuned.predict_proba(data.test.X), expected)
    assert np.allclose(tuned.scores(data.test.X), np.log(expected), atol=1e-6)


def test_a_selector_sees_what_it_chooses_by_and_no_more():
    for by, evidence in SELECTORS.items():
        sees = Tuned(method="taskres", knob="lr", by=by).info.sees
        assert sees == {"text", "support"} | ({evidence} if evidence else set())
    data = problem()
    with pytest.raises(EvidenceError, match="validation"):
        Tuned(method="taskres", knob="lr", by="validation").fit(data.X, data.y, text=data.text)


def test_unknown_knobs_and_selectors_are_answered_with_the_known_ones():
    data = problem()
    with pytest.raises(InputError, match="alpha"):
        Tuned(method="taskres", knob="alfa").fit(data.X, data.y, text=data.text)
    with pytest.raises(InputError, match="folds"):
        Tuned(method="taskres", knob="alpha", by="fold").fit(data.X, data.y, text=data.text)


@pytest.mark.parametrize(("name", "knob"), KNOBS)
def test_a_survey_holds_every_selector(name, knob):
    data = problem(noise=1.0)
    survey = KnobSurvey(method=name, knob=knob)
    survey.fit(**data.evidence(survey.info.sees))
    found = {key: choice.value for key, choice in survey.selected_.items()}
    curves = {"few_shot_validation", "validation", "test", "folds"}
    assert curves | {"grid", "ensemble"} <= set(found)
    assert all(len(found[key]) == len(found["grid"]) for key in curves)
    assert survey.score(*data.test) == max(found["test"])
    assert ("fixed" in found) == (name not in ("loo_blend", "logistic_probe"))
    for by in ("folds", "validation"):
        tuned = Tuned(method=name, knob=knob, by=by)
        tuned.fit(**data.evidence(tuned.info.sees))
        assert tuned.score(*data.test) == found["test"][int(np.argmax(found[by]))]


def test_a_survey_at_one_shot_asks_no_shots():
    data = problem(shots=1)
    survey = KnobSurvey(method="loo_blend")
    survey.fit(**data.evidence(survey.info.sees))
    assert not {"loo", "folds", "fixed"} & set(survey.selected_)


def test_any_parameter_can_be_a_knob():
    data = problem(noise=0.9)
    knob = ParameterKnob(RLA(), "lr", (1e-3, 1e-2))
    task = task_of(RLA(), data)
    expected = [RLA(lr=lr).fit(data.X, data.y, text=data.text).score(*data.test) for lr in (1e-3, 1e-2)]
    assert knob.knob_curve(task, data.test) == pytest.approx(expected)
