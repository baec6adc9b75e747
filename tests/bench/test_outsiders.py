"""Methods written elsewhere that leave unexpected things behind; `cheats.py` has more of them."""

import json
import re

import numpy as np
import pytest

from kshot.bench.cell import run_cell
from kshot.bench.records import Records, load_table
from kshot.bench.study import Cell, MethodSpec, parse_study
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.errors import KshotError
from kshot.methods.ncm import NCM
from kshot.types import Choice
from problems import problem


class Selects(NCM):
    """NCM that also leaves `left` in `selected_`."""

    left = None

    def _fit(self, task):
        super()._fit(task)
        self.selected_ = {"knob": self.left}  # pyright: ignore[reportAttributeAccessIssue]


class NumpyValues(Selects):
    left = Choice({"k": np.int64(3), "r": np.float32(0.5), "on": np.bool_(True), "each": np.arange(3)}, "support")


class BareFloat(Selects):
    left = 0.5


class AnObject(Selects):
    left = Choice(object(), "support")


class NumpyKey(Selects):
    left = Choice({np.int64(3): 1.0}, "support")


class NotANumber(NCM):
    def _fit(self, task):
        super()._fit(task)
        self.weights_[1] = np.nan


class ClassNumbers(np.ndarray):
    def __eq__(self, other):
        return np.ones(len(other), bool)


class Subclass(NCM):
    def predict(self, X):
        return super().predict(X).view(ClassNumbers)


class Fractions(NCM):
    def predict(self, X):
        return super().predict(X).astype(float)


class BeyondTheClasses(NCM):
    def predict(self, X):
        return super().predict(X) + 1


@pytest.fixture
def recorded(tmp_path):
    """What the records folder says of an outsider and of the builtin that shares its cell."""
    store = Store(tmp_path / "features")
    write(WORLDS["sim-satellite"], store)

    def run(outsider):
        names = (f"{__name__}:{outsider}", "ncm")
        study = parse_study(
            {"name": "s", "datasets": ["sim-satellite"], "backbones": ["simulated"], "tiers": ["dataset"]}
            | {"shots": [2], "seeds": [0], "methods": list(names)},
            "s.toml",
        )
        specs = [MethodSpec(name, name) for name in names]
        cell = Cell("sim-satellite", "simulated", "dataset", 2, 0)
        prior = load_prior(store, cell.dataset, cell.backbone, cell.tier)
        facts, found = run_cell(cell, specs, load_stratum(store, cell.dataset, cell.backbone), prior)
        records = Records(tmp_path / "records")
        records.write(study, facts, found)
        rows = {row["method"]: row for row in load_table(records.folder).to_pylist()}
        return rows[names[0]], rows["ncm"]

    return run


def test_numpy_values_are_recorded_as_plain_ones(recorded):
    mine, ncm = recorded("NumpyValues")
    assert (mine["status"], mine["accuracy"]) == ("ok", ncm["accuracy"])
    assert json.loads(mine["selected"])["knob"] == {"k": 3, "r": 0.5, "on": True, "each": [0, 1, 2]}
    assert json.loads(mine["selected_from"])["knob"] == "support"


@pytest.mark.parametrize(
    ("outsider", "reason"),
    [
        ("BareFloat", "InputError: selected_['knob'] is 0.5, not a Choice. Write Choice(value, from_)"),
        ("AnObject", "InputError: selected_ cannot be kept (object is not JSON)"),
        ("NumpyKey", "InputError: selected_ cannot be kept"),
        ("NotANumber", "KshotError: scores are not finite in "),
    ],
)
def test_what_cannot_be_recorded_fails_alone(recorded, outsider, reason):
    mine, ncm = recorded(outsider)
    assert mine["status"] == "failed"
    assert mine["accuracy"] is None
    assert mine["reason"].startswith(reason)
    assert ncm["status"] == "ok"


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_no_prediction(poison):
    given = problem()
    head = NCM().fit(given.X, given.y)
    expected = head.predict(given.test.X)
    assert (expected == (given.test.X @ head.coef_.T).argmax(axis=1)).all()
    head.intercept_ = np.full(len(head.classes_), poison)
    with pytest.raises(KshotError, match="scores are not finite"):
        head.predict(given.test.X)


def test_a_class_that_is_ruled_out_is_no_mistake():
    given = problem()
    head = NCM().fit(given.X, given.y)
    head.intercept_ = np.where(np.arange(len(head.classes_)) == 0, -np.inf, 0.0)
    assert head.predict(given.test.X).min() > 0


@pytest.mark.parametrize(
    ("outsider", "why"),
    [
        ("Subclass", "numpy array of whole numbers"),
        ("Fractions", "float64"),
        ("BeyondTheClasses", r"allowed is 0\.\.9"),
    ],
)
def test_predictions_are_checked_before_they_are_scored(recorded, outsider, why):
    row, neighbour = recorded(outsider)
    assert row["status"] == "failed"
    assert re.search(why, row["reason"])
    assert neighbour["status"] == "ok"
