"""What a head must answer: the same for the same question, whatever the dtype, the scale or the names of classes."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.methods.headfile import load_head, save_head
from kshot.methods.parameters import encoder_parameters, parameter_names
from kshot.testing.problems import Problem, problem
from kshot.types import Array, Choice, Evidence, Labelled

Make = Callable[[], Classifier]


def fitted(make: Make, data: Problem) -> Classifier:
    """Fitted on exactly what the method declares."""
    method = make()
    return method.fit(**data.evidence(method.info.sees))


def scores(make: Make, data: Problem) -> Array:
    return fitted(make, data).scores(data.test.X)


def shapes_and_accuracy(make: Make) -> None:
    data = problem()
    head = fitted(make, data)
    scores = head.scores(data.test.X)
    assert scores.shape == (len(data.test.y), 6), f"scores have shape {scores.shape}, not (queries, classes)"
    assert np.isfinite(scores).all(), "scores are not finite"
    assert head.n_features_in_ == 24, f"n_features_in_ is {head.n_features_in_}, not 24"
    assert np.array_equal(head.predict(data.test.X), scores.argmax(axis=1)), "predict is not the best score"
    accuracy = float(np.mean(scores.argmax(axis=1) == data.test.y))
    assert head.score(data.test.X, data.test.y) == accuracy, "score is not the accuracy of predict"
    assert accuracy > 0.5, f"accuracy is {accuracy:.2f} on an easy problem of six classes"


def probabilities_agree_with_predictions(make: Make) -> None:
    data = problem().cast(np.float64)
    head = fitted(make, data)
    probabilities = head.predict_proba(data.test.X)
    assert probabilities.shape == (len(data.test.y), 6), f"predict_proba has shape {probabilities.shape}"
    assert (probabilities >= 0).all(), "probabilities are negative"
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5), "probabilities do not add up to 1"
    assert np.array_equal(head.classes_[probabilities.argmax(axis=1)], head.predict(data.test.X)), (
        "the most probable class is not the predicted one"
    )
    logits = head.scores(data.test.X)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax = exponentials / exponentials.sum(axis=1, keepdims=True)
    assert np.allclose(softmax, probabilities, atol=1e-5), "the softmax of the scores is not the probabilities"


def encoder_constants_are_used_and_told(make: Make) -> None:
    data, takes = problem(), encoder_parameters(type(make()))
    given = data.evidence(make().info.sees)
    told = {"logit_scale": 20.0, "anchor_scale": 3.0}
    unknown, known = make().fit(**given), make().fit(**given, constants=told)
    for name in takes:
        assert unknown.selected_[name].from_ == "assumed", f"selected_ does not say that {name} is assumed"
        assert known.selected_[name] == Choice(told[name], "encoder"), f"{name} is not the encoder's"
        mine = make().set_params(**{name: 50.0}).fit(**given, constants=told)
        assert mine.selected_[name] == Choice(50.0, "fixed"), f"{name} is not what the caller set"
    same = make().set_params(**{name: told[name] for name in takes}).fit(**given)
    assert np.array_equal(known.scores(data.test.X), same.scores(data.test.X)), (
        "constants given to fit do not act as parameters do: use task.logit_scale and task.anchor_scale in _fit, and "
        "make those that you use parameters"
    )


def works_in_the_dtype_it_is_given(make: Make) -> None:
    for given, expected in ((np.float32, np.float32), (np.float64, np.float64), (np.float16, np.float32)):
        dtype = scores(make, problem().cast(given)).dtype
        assert dtype == expected, f"{np.dtype(given)} gives scores in {dtype}, not {np.dtype(expected)}"


def same_input_same_output(make: Make) -> None:
    data = problem()
    assert np.array_equal(scores(make, data), scores(make, data)), "two fits on the same data differ"


def input_is_left_alone(make: Make) -> None:
    data, before = problem(), problem()
    parts = (data.X, data.y, data.text, *data.test, *data.pool, *data.validation)
    for array in parts:
        array.flags.writeable = False
    fitted(make, data)
    for field in ("X", "y", "text"):
        assert np.array_equal(getattr(data, field), getattr(before, field)), f"fit changed {field}"


def input_of_any_length_is_normalised(make: Make) -> None:
    data = problem()
    scaled = replace(data, X=3 * data.X, text=0.2 * data.text)
    found = fitted(make, scaled).scores(5 * data.test.X)
    assert np.allclose(found, scores(make, data), atol=1e-5), "the length of rows changes scores"


def relabelling_classes_permutes_predictions(make: Make) -> None:
    data = problem()
    order = np.random.default_rng(3).permutation(6)
    renamed = np.argsort(order)
    moved = data.sent_through(lambda rows: rows, lambda y: renamed[y], data.text[order])
    exact = make().info.closed_form
    if not exact:
        rows = np.argsort(moved.y, kind="stable")
        moved = replace(moved, X=moved.X[rows], y=moved.y[rows])
    same = renamed[fitted(make, data).predict(data.test.X)] == fitted(make, moved).predict(data.test.X)
    assert same.mean() >= (1 if exact else 0.9), f"renaming classes changes {np.mean(~same):.0%} of predictions"


def labels_of_any_kind_are_given_back(make: Make) -> None:
    data = problem()
    expected = fitted(make, data).predict(data.test.X)
    names = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])
    for labels in (names, np.arange(1, 7), names.astype(object)):
        sees = make().info.sees
        named = data.sent_through(lambda rows: rows, lambda y, labels=labels: labels[y])
        head = make().fit(**named.evidence(sees), classes=labels.tolist() if "text" in sees else None)
        predicted = head.predict(data.test.X)
        assert np.array_equal(predicted, labels[expected]), f"labels {labels[0]!r} … {labels[-1]!r} come back wrong"
        accuracy = float(np.mean(expected == data.test.y))
        assert head.score(data.test.X, labels[data.test.y]) == accuracy, f"score misreads {labels[0]!r} …"


def rotation_changes_nothing(make: Make) -> None:
    if not make().info.rotation_free:
        return
    data = problem()
    Q = np.linalg.qr(np.random.default_rng(5).normal(size=(24, 24)))[0]
    expected = scores(make, data)
    found = scores(make, data.sent_through(lambda rows: rows @ Q, lambda y: y))
    near = np.allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    assert near, "a rotation of all features changes scores; if that is meant, declare rotation_free=False"


def linear_heads_reproduce_their_scores(make: Make) -> None:
    data = problem()
    head = fitted(make, data)
    if not head.info.linear:
        assert not hasattr(head, "coef_"), "a head with coef_ must declare linear=True"
        return
    expected = data.test.X @ head.coef_.T + head.intercept_
    near = np.allclose(head.scores(data.test.X), expected, atol=1e-9 * np.abs(expected).max())
    assert near, "coef_ and intercept_ do not give the scores; else declare linear=False"


def every_coordinate_counts(make: Make) -> None:
    sees = make().info.sees
    plain = problem(shots=3, dim=640)
    # Blends that lean on the text alone need shots where two classes have the text of each other.
    problems = [plain, replace(plain, text=plain.text[[1, 0, 2, 3, 4, 5]])]
    for name, part in {"text": "text", "support": "X"}.items():
        if name in sees:
            changes = []
            for data in problems:
                rows = getattr(data, part).copy()
                # The other sign: rows keep their length.
                rows[:, 512:] *= -1
                elsewhere = replace(data, **{part: rows})
                changes.append(not np.array_equal(scores(make, data), scores(make, elsewhere)))
            assert any(changes), f"columns of {name} beyond the 512th change no score: does the head cut features off?"


def views_stand_in_for_the_shots(make: Make) -> None:
    data = problem()
    given = data.evidence(make().info.sees)
    if not make().info.views:
        return
    views = data.X + 0.05 * np.random.default_rng(2).normal(size=(3, *data.X.shape))
    found = make().fit(**given, views=views).scores(data.test.X)
    elsewhere = {**given, "X": np.roll(data.X, 1, axis=0)}
    same = make().fit(**elsewhere, views=views).scores(data.test.X)
    assert np.isfinite(found).all(), "scores are not finite with views"
    assert np.array_equal(found, same), "X still matters where views are given"


def round_trip_through_the_head_file(make: Make) -> None:
    data = problem()
    head = fitted(make, data)
    name = registry.name_of(head)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head.safetensors"
        save_head(head, path, method=name, classes=["ä", "<b>"])
        loaded = load_head(path, method=name)
    assert type(loaded) is type(head), f"a {type(head).__name__} comes back as {type(loaded).__name__}"
    assert loaded.get_params() == head.get_params(), "parameters change on the way through a head file"
    assert loaded.selected_ == head.selected_, "selected_ changes on the way through a head file"
    same = np.array_equal(loaded.scores(data.test.X), head.scores(data.test.X))
    assert same, "scores change on the way through a head file: keep what _scores needs in attributes ending in _"


def parameters_are_read_set_and_cloned(make: Make) -> None:
    from sklearn.base import clone

    method = make()
    twin: Any = clone(method)
    assert twin is not method, "clone gives the same object"
    assert twin.get_params() == method.get_params(), "clone changes parameters"
    strange = method.info.constants - set(parameter_names(type(method)))
    assert not strange, f"info.constants names {sorted(strange)}, which are no parameters"


def fitted_quantities_say_where_they_came_from(make: Make) -> None:
    head = fitted(make, problem())
    for name, choice in head.selected_.items():
        assert isinstance(choice, Choice), f"selected_['{name}'] is {choice!r}, not a Choice"
        known = choice.from_ in ("fixed", "encoder", "assumed") or choice.from_ in head.info.sees
        assert known, f"selected_['{name}'] comes from {choice.from_}, which the method does not see"
    json.dumps({name: asdict(choice) for name, choice in head.selected_.items()}, allow_nan=False)


def shuffled_test_labels_reach_only_declared_oracles(make: Make) -> None:
    data = problem()
    shuffled = Labelled(data.test.X, np.random.default_rng(1).permutation(data.test.y))
    everything = data.evidence(frozenset(get_args(Evidence)) - {"test"})
    honest, twisted = (make().fit(**everything, test=test).scores(data.test.X) for test in (data.test, shuffled))
    same = np.array_equal(honest, twisted)
    assert same or "test" in make().info.sees, "test labels change a head that does not declare them"


def uneven_shots(make: Make) -> None:
    data = problem(counts=[2, 5, 3, 2, 7, 4])
    accuracy = fitted(make, data).score(*data.test)
    assert accuracy > 0.5, f"accuracy is {accuracy:.2f} where classes have 2 to 7 shots"


def degenerate_problems(make: Make) -> None:
    plain = problem()
    twins = plain.text[[0, 0, 2, 3, 4, 5]]
    means = np.stack([plain.X[plain.y == c].mean(axis=0) for c in range(6)])
    for case, data in {
        "two classes": problem(classes=2),
        "fewer dimensions than classes": problem(classes=12, dim=8),
        "fewer rows than dimensions": problem(classes=3, shots=2, dim=64),
        "identical shots": problem(noise=0.0),
        "two classes with the same text": replace(plain, text=twins),
        "text equal to the class means": replace(plain, text=means),
    }.items():
        assert np.isfinite(scores(make, data)).all(), f"scores are not finite with {case}"


CHECKS = (
    shapes_and_accuracy,
    probabilities_agree_with_predictions,
    encoder_constants_are_used_and_told,
    works_in_the_dtype_it_is_given,
    same_input_same_output,
    input_is_left_alone,
    input_of_any_length_is_normalised,
    relabelling_classes_permutes_predictions,
    labels_of_any_kind_are_given_back,
    rotation_changes_nothing,
    every_coordinate_counts,
    linear_heads_reproduce_their_scores,
    views_stand_in_for_the_shots,
    round_trip_through_the_head_file,
    parameters_are_read_set_and_cloned,
    fitted_quantities_say_where_they_came_from,
    shuffled_test_labels_reach_only_declared_oracles,
    uneven_shots,
    degenerate_problems,
)
