"""Single heads: a zero parameter, HOSO's held-out shot, the recorded ratio, precision; info read off the class."""

import dataclasses

import numpy as np
import pytest

from kshot import CLAP, GDA, HOSO, TaskRes
from kshot.extend import FREE_EVIDENCE, Classifier, Count, MethodInfo, Share
from kshot.methods import registry
from kshot.methods.parameters import parameter_words
from kshot.stats.selected import RATIO
from problems import SHORTER, problem


def test_a_learning_rate_of_zero_learns_nothing():
    data = problem()
    head = TaskRes(lr=0.0, warmup_lr=0.0, epochs=3).fit(data.X, data.y, text=data.text)
    assert head.selected_["lr"].value == 0.0
    assert head.selected_["mean_residual"].value == 0.0
    text = data.text / np.linalg.norm(data.text, axis=1, keepdims=True)
    assert np.allclose(head.coef_, 100 * text)


@pytest.mark.parametrize("refit", [True, False])
def test_the_held_out_shot_teaches_the_adapter_only_when_it_is_fitted_again(refit):
    rng = np.random.default_rng(0)
    X, text = rng.normal(size=(12, 16)), rng.normal(size=(4, 16))
    y = np.repeat(np.arange(4), 3)
    other = X.copy()
    other[::3] = rng.normal(size=(4, 16))  # the first shot of each class is the one held out
    first, second = (HOSO(epochs=5, refit=refit).fit(rows, y, text=text) for rows in (X, other))
    assert np.array_equal(first.down_, second.down_) is not refit
    assert first.selected_["held_out_loss"].value != second.selected_["held_out_loss"].value


@pytest.mark.parametrize("name", registry.names())
def test_what_is_recorded_as_the_ratio_is_the_weight_of_the_pictures(name):
    data = problem()
    head = registry.create(name, **SHORTER.get(name, {}))
    head.fit(**data.evidence(head.info.sees))
    if RATIO not in head.selected_:
        return
    recorded = head.selected_[RATIO].value
    weights = []
    for c, row in enumerate(head.coef_):
        ends = np.stack([data.X[data.y == c].mean(axis=0), data.text[c]], axis=1)
        parts, *_ = np.linalg.lstsq(ends, row, rcond=None)
        np.testing.assert_allclose(ends @ parts, row, atol=1e-5)
        weights.append(parts[0] / parts.sum())
    mean = recorded["mean"] if isinstance(recorded, dict) else recorded
    assert np.mean(weights) == pytest.approx(mean, abs=1e-4)


class Fields(Classifier):
    """Parameters as fields."""

    info = MethodInfo("fields", "Fields", FREE_EVIDENCE, 1)
    share: Share = 0.5
    kept_: np.ndarray


class More(Fields):
    steps: Count = 3


class Stores(Classifier):
    def __init__(self, share: Share = 0.5):
        self.share = share

    @property
    def info(self):
        return MethodInfo("stores", "Stores", FREE_EVIDENCE, 1)


class Inherits(Stores):
    kept_: np.ndarray


def test_parameters_are_fields_or_arguments_of_init():
    assert repr(More(steps=4)) == "More(share=0.5, steps=4)"
    assert repr(Inherits(0.25)) == "Inherits(share=0.25)"
    with pytest.raises(TypeError, match="positional"):
        More(0.25)
    assert "share : a number from 0 to 1, default 0.5" in Fields.__doc__
    assert not dataclasses.is_dataclass(Inherits)


def test_a_parameter_that_a_subclass_sets_is_its_default():
    """As in any class, with or without an annotation."""

    class Shorter(TaskRes):
        epochs = 3

    class Faster(Shorter):
        lr = 0.5

    data = problem()
    head = Faster().fit(data.X, data.y, text=data.text)
    same = TaskRes(epochs=3, lr=0.5).fit(data.X, data.y, text=data.text)
    assert (head.epochs, Faster(epochs=4).epochs, TaskRes().epochs) == (3, 4, TaskRes.epochs)
    assert np.array_equal(head.coef_, same.coef_)


def test_every_parameter_of_every_head_is_described():
    for name in registry.names():
        method = registry.create(name)
        assert parameter_words(type(method)).keys() == method.get_params().keys(), name


def test_info_is_read_off_the_class_or_follows_the_parameters():
    assert (CLAP.info.key, registry.info("zs_lp").key, TaskRes.info.key) == ("clap", "zs_lp", "taskres")
    assert registry.info("gda_alpha1", {"alpha": 0.5}).key == GDA(alpha=0.5).info.key == "gda_alpha0.5"
    for name in registry.names():
        assert registry.info(name) == registry.create(name).info


WORLDS = [
    {"seed": 1, "classes": 10, "shots": 4, "dim": 64, "noise": 0.9},
    {"seed": 2, "classes": 25, "shots": 2, "dim": 32, "noise": 0.7},
    {"seed": 3, "classes": 5, "shots": 16, "dim": 128, "noise": 1.2},
]


@pytest.mark.parametrize("name", [name for name in registry.names() if name != "hoso"])
@pytest.mark.parametrize("world", WORLDS, ids=["ten", "many", "wide"])
def test_accuracy_does_not_depend_on_the_dtype(name, world):
    data = problem(**world, n_test=2000)
    accuracy = []
    for dtype in (np.float32, np.float64):
        cast = data.cast(dtype)
        method = registry.create(name, **SHORTER.get(name, {}))
        accuracy.append(method.fit(**cast.evidence(method.info.sees)).score(*cast.test))
    assert accuracy[0] == pytest.approx(accuracy[1], abs=0.001)
