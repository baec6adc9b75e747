"""What every registered method promises, whoever wrote it."""

import json
from dataclasses import asdict, replace
from typing import get_args

import numpy as np
import pytest
from sklearn.base import clone

from kshot.errors import EvidenceError, InputError, UndefinedError
from kshot.methods import registry
from kshot.methods.headfile import load_head, save_head
from kshot.types import Evidence, Labelled
from problems import SHORTER, Problem, problem

EVERY = registry.names()


def create(name: str, **params):
    return registry.create(name, **{**SHORTER.get(name, {}), **params})


def fit(name: str, data: Problem, **params):
    method = create(name, **params)
    return method.fit(**data.evidence(method.info.sees))


def copy_of(data: Problem) -> Problem:
    return data.cast(data.X.dtype)


@pytest.mark.parametrize("name", EVERY)
class TestContract:
    def test_shapes_and_accuracy(self, name):
        data = problem()
        head = fit(name, data)
        scores = head.decision_function(data.test.X)
        assert scores.shape == (len(data.test.y), 6)
        assert np.isfinite(scores).all()
        assert np.array_equal(head.predict(data.test.X), scores.argmax(axis=1))
        assert head.score(data.test.X, data.test.y) == np.mean(scores.argmax(axis=1) == data.test.y)
        assert head.score(data.test.X, data.test.y) > 0.5

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_works_in_the_dtype_it_is_given(self, name, dtype):
        data = problem().cast(dtype)
        assert fit(name, data).decision_function(data.test.X).dtype == dtype

    def test_float16_is_read_as_float32(self, name):
        data = problem().cast(np.float16)
        assert fit(name, data).decision_function(data.test.X).dtype == np.float32

    def test_same_input_same_output(self, name):
        data = problem()
        first, second = (fit(name, data).decision_function(data.test.X) for _ in range(2))
        assert np.array_equal(first, second)

    def test_input_is_left_alone(self, name):
        data = problem()
        before = copy_of(data)
        fit(name, data)
        for field in ("X", "y", "text"):
            assert np.array_equal(getattr(data, field), getattr(before, field))

    def test_read_only_input_is_enough(self, name):
        data = problem()
        for array in (data.X, data.y, data.text, data.test.X, data.test.y, data.pool.X, data.pool.y):
            array.flags.writeable = False
        fit(name, data)

    def test_input_of_any_length_is_normalised(self, name):
        data = problem()
        scaled = replace(data, X=3 * data.X, text=0.2 * data.text)
        expected = fit(name, data).decision_function(data.test.X)
        assert np.allclose(fit(name, scaled).decision_function(5 * data.test.X), expected, atol=1e-5)

    def test_relabelling_classes_permutes_predictions(self, name):
        data = problem()
        order = np.random.default_rng(3).permutation(6)
        renamed = np.argsort(order)

        def rename(pair):
            return Labelled(pair.X, renamed[pair.y])

        moved = Problem(
            data.X,
            renamed[data.y],
            data.text[order],
            rename(data.pool),
            rename(data.validation),
            rename(data.test),
        )
        if not create(name).info.closed_form:
            rows = np.argsort(moved.y, kind="stable")
            moved = replace(moved, X=moved.X[rows], y=moved.y[rows])
        agreement = renamed[fit(name, data).predict(data.test.X)] == fit(name, moved).predict(data.test.X)
        assert agreement.mean() >= (1 if create(name).info.closed_form else 0.9)

    def test_rotation_changes_nothing(self, name):
        data = problem()
        Q = np.linalg.qr(np.random.default_rng(5).normal(size=(24, 24)))[0]

        def turn(pair):
            return Labelled(pair.X @ Q, pair.y)

        turned = Problem(
            data.X @ Q, data.y, data.text @ Q, turn(data.pool), turn(data.validation), turn(data.test)
        )
        if not create(name).info.rotation_free:
            pytest.skip("the recipe's random initialisation is not rotated with the data")
        expected = fit(name, data).decision_function(data.test.X)
        found = fit(name, turned).decision_function(turned.test.X)
        assert np.allclose(found, expected, atol=1e-6 * np.abs(expected).max())

    def test_round_trip_through_the_head_file(self, name, tmp_path):
        data = problem()
        head = fit(name, data)
        save_head(head, tmp_path / "head.safetensors", method=name, classes=["ä", "<b>"])
        loaded = load_head(tmp_path / "head.safetensors")
        assert type(loaded) is type(head)
        assert loaded.get_params() == head.get_params()
        assert loaded.selected_ == head.selected_
        assert np.array_equal(loaded.decision_function(data.test.X), head.decision_function(data.test.X))

    def test_linear_heads_reproduce_their_scores(self, name):
        data = problem()
        head = fit(name, data)
        if not head.info.linear:
            assert not hasattr(head, "coef_")
            return
        expected = data.test.X @ head.coef_.T + head.intercept_
        assert np.allclose(head.decision_function(data.test.X), expected, atol=1e-9 * np.abs(expected).max())

    def test_views_stand_in_for_the_shots_or_are_refused(self, name):
        data = problem()
        method = create(name)
        given = data.evidence(method.info.sees)
        rng = np.random.default_rng(2)
        views = data.X + 0.05 * rng.normal(size=(3, *data.X.shape))
        if not method.info.views:
            with pytest.raises(InputError, match="views"):
                method.fit(**given, views=views)
            return
        found = method.fit(**given, views=views).decision_function(data.test.X)
        elsewhere = {**given, "X": np.roll(data.X, 1, axis=0)}
        same = create(name).fit(**elsewhere, views=views).decision_function(data.test.X)
        assert np.isfinite(found).all()
        assert np.array_equal(found, same)
        with pytest.raises(InputError, match="views must have shape"):
            create(name).fit(**given, views=views[:, 1:])

    def test_sklearn_clone_and_params(self, name):
        method = create(name)
        twin = clone(method)
        assert twin is not method
        assert twin.get_params() == method.get_params()
        with pytest.raises(InputError, match="no parameter"):
            method.set_params(no_such_thing=1)

    def test_fitted_quantities_say_where_they_came_from(self, name):
        data = problem()
        head = fit(name, data)
        for choice in head.selected_.values():
            assert choice.from_ == "fixed" or choice.from_ in head.info.sees
        json.dumps({key: asdict(choice) for key, choice in head.selected_.items()}, allow_nan=False)

    def test_declared_evidence_is_demanded(self, name):
        data = problem()
        sees = create(name).info.sees
        for missing in sees:
            with pytest.raises(EvidenceError, match=missing):
                create(name).fit(**data.evidence(sees - {missing}))

    def test_shuffled_test_labels_reach_only_declared_oracles(self, name):
        data = problem()
        method = create(name)
        shuffled = np.random.default_rng(1).permutation(data.test.y)
        everything = data.evidence(set(get_args(Evidence)) - {"test"})
        honest = method.fit(**everything, test=data.test).decision_function(data.test.X)
        twisted = create(name).fit(**everything, test=Labelled(data.test.X, shuffled))
        same = np.array_equal(honest, twisted.decision_function(data.test.X))
        assert same or "test" in method.info.sees

    def test_too_few_shots_is_undefined_not_a_crash(self, name):
        data = problem(shots=1)
        method = create(name)
        if method.info.min_shots > 1:
            with pytest.raises(UndefinedError, match=f"needs {method.info.min_shots} shots"):
                fit(name, data)
        else:
            assert np.isfinite(fit(name, data).decision_function(data.test.X)).all()

    def test_uneven_shots(self, name):
        data = problem(counts=[2, 5, 3, 2, 7, 4])
        assert fit(name, data).score(data.test.X, data.test.y) > 0.5

    @pytest.mark.parametrize(
        "case",
        [
            {"classes": 2},
            {"classes": 12, "dim": 8},
            {"classes": 3, "shots": 2, "dim": 64},
            {"noise": 0.0},
        ],
        ids=["two classes", "d < C", "N < d", "identical shots"],
    )
    def test_degenerate_problems(self, name, case):
        data = problem(**case)
        assert np.isfinite(fit(name, data).decision_function(data.test.X)).all()

    def test_duplicated_text_prototypes(self, name):
        data = problem()
        text = data.text.copy()
        text[1] = text[0]
        assert np.isfinite(fit(name, replace(data, text=text)).decision_function(data.test.X)).all()

    def test_text_equal_to_the_class_means(self, name):
        data = problem()
        means = np.stack([data.X[data.y == c].mean(axis=0) for c in range(6)])
        assert np.isfinite(fit(name, replace(data, text=means)).decision_function(data.test.X)).all()

    @pytest.mark.parametrize("value", [np.nan, np.inf, 0.0], ids=["NaN", "infinite", "zero"])
    def test_bad_rows_are_named(self, name, value):
        data = problem()
        which = "X" if "support" in create(name).info.sees else "text"
        rows = getattr(data, which).copy()
        rows[3] = value
        with pytest.raises(InputError, match=r"1 row\(s\): 3"):
            fit(name, replace(data, **{which: rows}))
        with pytest.raises(InputError, match="the query"):
            fit(name, data).predict(rows)

    def test_wrong_dimension_and_labels(self, name):
        data = problem()
        with pytest.raises(InputError, match="dimension"):
            fit(name, data).predict(data.test.X[:, :-1])
        sees = create(name).info.sees
        if sees >= {"text", "support"}:
            with pytest.raises(InputError, match="dimension"):
                fit(name, replace(data, text=data.text[:, :-1]))
            with pytest.raises(InputError, match="span"):
                fit(name, replace(data, y=data.y + 1))
        if "support" in sees:
            without = replace(data, X=data.X[data.y != 2], y=data.y[data.y != 2])
            if create(name)._min_shots():
                with pytest.raises(InputError, match="no shots"):
                    fit(name, without)
            else:
                assert np.isfinite(fit(name, without).decision_function(data.test.X)).all()
            with pytest.raises(InputError, match="integers"):
                fit(name, replace(data, y=data.y + 0.5))
