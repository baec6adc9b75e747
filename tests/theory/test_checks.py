"""The checks pass, quickly here and in full in the slow run; the theory page names every closed form and check."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from kshot.theory.checks import CHECKS
from kshot.theory.checks.trial import FULL, QUICK, Verdict

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "theory.md").read_text()
MODULES = ("blend_error", "sampling", "decision", "capacity")


@pytest.mark.parametrize("effort", [QUICK, pytest.param(FULL, marks=pytest.mark.slow)], ids=["quick", "full"])
@pytest.mark.parametrize("name", CHECKS)
def test_check_passes(name, effort):
    assert [v for v in CHECKS[name](effort) if not v.passed] == []


def test_a_number_that_does_not_exist_passes_nothing():
    assert not Verdict("nan", float("nan"), 1.0).passed


def test_the_same_seed_gives_the_same_verdicts():
    assert CHECKS["two_class_risk"](QUICK) == CHECKS["two_class_risk"](QUICK)


@pytest.mark.parametrize("module", MODULES)
def test_every_function_is_on_the_page(module):
    where = import_module(f"kshot.theory.{module}")
    functions = [name for name, value in inspect.getmembers(where, inspect.isfunction) if name[0] != "_"]
    own = [name for name in functions if getattr(where, name).__module__ == where.__name__]
    assert own
    assert [name for name in own if f"`{module}.{name}`" not in PAGE] == []


def test_every_check_is_on_the_page_and_every_name_on_it_exists():
    assert [name for name in CHECKS if f"`{name}`" not in PAGE] == []
    names = re.findall(rf"`((?:kshot\.solvers\.rows|{'|'.join(MODULES)})\.\w+)`", PAGE)
    assert len(names) > 30
    for name in names:
        module, attribute = (name if name.startswith("kshot.") else f"kshot.theory.{name}").rsplit(".", 1)
        assert hasattr(import_module(module), attribute), name
