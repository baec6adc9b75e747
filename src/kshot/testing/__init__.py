"""The contract that every method keeps, for your own tests: `check_method(MyMethod)`, or check by check.

    @pytest.mark.parametrize("check", method_checks(MyMethod), ids=check_name)
    def test_contract(check):
        check()

Needs no pytest itself: a broken promise is an AssertionError that says which one, and any other error of the method has
a note with the name of the check.
"""

from collections.abc import Callable, Iterator
from functools import partial

from kshot.methods.base import Classifier
from kshot.testing import answers, refusals
from kshot.testing.problems import Problem as Problem
from kshot.testing.problems import problem as problem

CHECKS = (*answers.CHECKS, *refusals.CHECKS)


def check_method(method: type[Classifier] | Classifier) -> None:
    """Run all checks; the first broken promise is raised."""
    for check in method_checks(method):
        check()


def method_checks(method: type[Classifier] | Classifier) -> Iterator[partial[None]]:
    """Every check of this method, to be called without arguments."""
    make = _maker(method)
    for check in CHECKS:
        yield partial(_named, check, make)


def _named(check: Callable[..., None], make: Callable[[], Classifier]) -> None:
    """Run the check; what goes wrong in it says its name."""
    try:
        check(make)
    except AssertionError as error:
        raise AssertionError(f"{check.__name__}: {error or 'not kept; see the line above'}") from error
    except Exception as error:
        error.add_note(f"in the check {check.__name__} of kshot.testing")
        raise


def check_name(check: "partial[None]") -> str:
    """The name of a check, for a test runner."""
    return check.args[0].__name__


def _maker(method: type[Classifier] | Classifier) -> Callable[[], Classifier]:
    """A function that makes unfitted methods with the same parameters."""
    if isinstance(method, type):
        return method
    return lambda: type(method)(**method.get_params())
