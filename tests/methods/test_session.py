"""The hash of a head of a session: whatever changes its answers changes the hash, and nothing else does."""

import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kshot.extend import Classifier, MethodInfo
from kshot.methods.session import class_code

INFO = MethodInfo(key="h", title="h", sees=frozenset({"text", "support"}), min_shots=1)


def session(source, **values):
    """What a notebook that ran this source holds."""
    found = {"functools": functools, "Classifier": Classifier, "INFO": INFO, "__name__": "__main__"} | values
    exec(source, found)
    return found["Head"]


def many(values):
    """A class with one method for each value, which is a global of the session."""
    methods = "".join(f"    def m{n}(self):\n        return G{n}\n" for n in range(len(values)))
    return session(f"class Head(Classifier):\n    info = INFO\n{methods}", **{f"G{n}": v for n, v in enumerate(values)})


@pytest.mark.parametrize("kind", [float, lambda v: [v], lambda v: np.full(3, v), lambda v: SimpleNamespace(v=v)])
def test_every_value_that_any_method_names_counts(kind):
    """Also the last one's: a value that is gone leaves its place in memory to the next."""
    first = class_code(many([kind(1.0) for _ in range(12)]))
    assert class_code(many([kind(1.0) for _ in range(12)])) == first
    for changed in range(12):
        assert class_code(many([kind(1.0 + (n == changed)) for n in range(12)])) != first


class Config:
    def __init__(self, v):
        self.v = v


KINDS = {
    "object": Config,
    "partial": lambda v: functools.partial(round, ndigits=v),
    "tensor": lambda v: torch.full((2,), float(v), dtype=torch.bfloat16, requires_grad=True),
    "module": lambda v: torch.nn.Linear(2, v),
    "generator": np.random.default_rng,
    "set": lambda v: {"a", "b", str(v)},
    "path": lambda v: Path(f"weights-{v}"),
    "pattern": lambda v: re.compile(f"a{{{v}}}"),
    "nested": lambda v: {"a": [(Config(v), None)]},
    "bound method": lambda v: Config(v).__init__,
    "numpy number": np.float32,
    "object array": lambda v: np.array([Config(v)], object),
}


@pytest.mark.parametrize("kind", KINDS)
def test_objects_count_by_what_they_hold(kind):
    torch.manual_seed(0)
    one, two = (class_code(many([KINDS[kind](v)])) for v in (1, 2))
    torch.manual_seed(0)
    assert one != two
    assert class_code(many([KINDS[kind](1)])) == one


def test_what_has_no_state_is_no_obstacle():
    import threading

    held = threading.Lock(), (x for x in [1]), sys.stdout, threading.current_thread()
    assert class_code(many(list(held))) == class_code(many(list(held)))


SOURCE = """
class Scale:
    def of(self, x):
        return 2 * x

SCALE = Scale()

@functools.cache
def twice(x):
    return SCALE.of(x)

class Base(Classifier):
    info = INFO
    @property
    def half(self):
        return 0.5
    @staticmethod
    def add(x, y=1):
        return x + y

class Head(Base):
    def _fit(self, task):
        return twice(self.half)
"""


@pytest.mark.parametrize(
    ("was", "now"),
    [("2 * x", "3 * x"), ("SCALE.of(x)", "SCALE.of(x) + 1"), ("0.5", "0.6"), ("y=1", "y=2"), ("self.half)", "1)")],
)
def test_helpers_bases_and_the_classes_of_objects_count(was, now):
    assert class_code(session(SOURCE.replace(was, now))) != class_code(session(SOURCE))


def test_which_of_two_values_stands_where_counts():
    one, other = (lambda t: t.text), (lambda t: t.means)
    assert class_code(many([(one, other, one)])) != class_code(many([(one, other, other)]))


def test_values_that_a_session_set_in_its_modules_count(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "settings_of_head.py").write_text("RATIO = 0.0\n")
    settings = importlib.import_module("settings_of_head")
    source = "class Head(Classifier):\n    info = INFO\n    def _fit(self, task):\n        return settings.RATIO\n"
    before = class_code(session(source, settings=settings))
    assert class_code(session(source, settings=settings)) == before
    settings.RATIO = 1.0
    assert class_code(session(source, settings=settings)) != before


def test_the_hash_is_the_same_in_every_process(tmp_path):
    lines = [
        "import numpy as np, re, functools",
        "from kshot.extend import Classifier, MethodInfo",
        "from kshot.methods.session import class_code",
        "INFO = MethodInfo(key='h', title='h', sees=frozenset({'text', 'support'}), min_shots=1)",
        SOURCE.replace("return 2 * x", "return WORDS, PATTERN, RNG, PART, x"),
        "WORDS, PATTERN = {'a', 'b', 'c', 'd'}, re.compile('a')",
        "RNG, PART = np.random.default_rng(0), functools.partial(round, ndigits=2)",
        "print(class_code(Head))",
    ]
    (tmp_path / "shown.py").write_text("\n".join(lines))
    run = [sys.executable, str(tmp_path / "shown.py")]
    said = {subprocess.run(run, capture_output=True, text=True, check=True).stdout for _ in range(3)}
    assert len(said) == 1
    assert len(said.pop().strip()) == 16


@pytest.mark.parametrize("imported", ["import beside", "from beside import factor"])
def test_a_module_of_the_folder_counts_with_what_it_imports(tmp_path, monkeypatch, imported):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    used = "beside.factor()" if imported == "import beside" else "factor()"
    source = f"{imported}\nclass Head(Classifier):\n    info = INFO\n    def _fit(self, task):\n        return {used}\n"
    Path("deeper.py").write_text("VALUE = 1\n")
    Path("beside.py").write_text("import deeper\ndef factor():\n    return deeper.VALUE\n")
    codes = [class_code(session(source))]
    for name, old, new in (("beside.py", "deeper.VALUE", "2 * deeper.VALUE"), ("deeper.py", "1", "10")):
        Path(name).write_text(Path(name).read_text().replace(old, new))
        codes.append(class_code(session(source)))
    Path("unrelated.py").write_text("x = 1\n")
    codes.append(class_code(session(source)))
    sys.modules.pop("beside"), sys.modules.pop("deeper")
    assert len(set(codes)) == 3
    assert codes[2] == codes[3]
