"""The contract of `kshot.testing` finds what it promises to find, and a method written with `kshot.extend` passes."""

import numpy as np
import pytest

from kshot.extend import RATIO, Choice, Classifier, MethodInfo, Share, Task, blend
from kshot.testing import check_method, check_name, method_checks


class Half(Classifier):
    """An honest method from elsewhere."""

    def __init__(self, ratio: Share = 0.5):
        self.ratio = ratio

    @property
    def info(self) -> MethodInfo:
        return MethodInfo("half", "Half", frozenset({"text", "support"}), 1)

    def _fit(self, task: Task) -> None:
        self.selected_ = {RATIO: Choice(self.ratio, "fixed")}
        self._set_linear(blend(task.means, task.text, self.ratio))


class Forgetful(Half):
    """Keeps what it needs where no head file looks."""

    def _fit(self, task):
        super()._fit(task)
        self.hidden = self.coef_.copy()

    def _scores(self, X):
        return X @ self.hidden.T


class Peeking(Half):
    """Says that it looked at the test labels, which it may not see."""

    def _fit(self, task):
        super()._fit(task)
        self.selected_ = {RATIO: Choice(self.ratio, "test")}


class Coordinates(Half):
    def _fit(self, task):
        super()._fit(task)
        self.coef_ = self.coef_ * np.linspace(1, 2, self.coef_.shape[1], dtype=self.coef_.dtype)


class Drawn(Half):
    def _fit(self, task):
        super()._fit(task)
        self.coef_ = self.coef_ + 1e-3 * np.random.default_rng().normal(size=self.coef_.shape)


def test_an_honest_method_passes_as_class_and_as_instance():
    check_method(Half)
    check_method(Half(ratio=0.3))


@pytest.mark.parametrize(
    ("method", "check", "says"),
    [
        (Forgetful, "round_trip_through_the_head_file", "hidden"),
        (Peeking, "fitted_quantities_say_where_they_came_from", "comes from test, which the method does not"),
        (Coordinates, "rotation_changes_nothing", "declare rotation_free=False"),
        (Drawn, "same_input_same_output", "two fits on the same data differ"),
    ],
)
def test_a_broken_promise_is_named(method, check, says):
    checks = {check_name(one): one for one in method_checks(method)}
    with pytest.raises((AssertionError, AttributeError), match=says):
        checks[check]()
    with pytest.raises((AssertionError, AttributeError)):
        check_method(method)


class CutsText(Half):
    """Keeps only a hundred coordinates of the text, as for an encoder that it once was written for."""

    def _fit(self, task):
        text = task.text.copy()
        text[:, 100:] = 0
        self._set_linear(blend(task.means, text, self.ratio))


class SinglePrecision(Half):
    """As a head of torch often has it."""

    def _fit(self, task):
        self._set_linear(blend(task.means, task.text, self.ratio).astype(np.float32))


class Crashes(Half):
    def _fit(self, task):
        raise TypeError("tensor expected")


@pytest.mark.parametrize(
    ("head", "check"), [(CutsText, "every_coordinate_counts"), (SinglePrecision, "works_in_the_dtype_it_is_given")]
)
def test_a_broken_promise_names_its_check(head, check):
    checks = {check_name(each): each for each in method_checks(head)}
    with pytest.raises(AssertionError) as caught:
        checks[check]()
    assert str(caught.value).startswith(f"{check}: ")
    assert len(str(caught.value)) > len(check) + 10


def test_another_error_has_a_note_with_its_check():
    with pytest.raises(TypeError, match="tensor expected") as caught:
        check_method(Crashes)
    assert caught.value.__notes__ == ["in the check shapes_and_accuracy of kshot.testing"]
