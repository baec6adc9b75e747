"""The theory page names every closed form and every check, and nothing that does not exist."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from kshot.paper import checks

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "theory.md").read_text()
MODULES = ("blend_error", "sampling", "shift", "two_class", "capacity", "pairs", "covariance")


@pytest.mark.parametrize("module", MODULES)
def test_every_function_is_on_the_page(module):
    where = import_module(f"kshot.theory.{module}")
    own = [
        name
        for name, value in vars(where).items()
        if inspect.isfunction(value) and value.__module__ == where.__name__ and not name.startswith("_")
    ]
    assert own
    assert [name for name in own if f"`{module}.{name}`" not in PAGE] == []


def test_every_check_is_on_the_page():
    assert [name for name in checks.NAMES if f"`{name}`" not in PAGE] == []


def test_every_name_on_the_page_exists():
    names = re.findall(rf"`((?:kshot\.solvers\.shrinkage|{'|'.join(MODULES)})\.\w+)`", PAGE)
    assert len(names) > 30
    for name in names:
        path = name if name.startswith("kshot.") else f"kshot.theory.{name}"
        module, attribute = path.rsplit(".", 1)
        assert hasattr(import_module(module), attribute), name
