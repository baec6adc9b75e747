"""The hash of a user's head: whatever its code names changes it, and nothing else does."""

import functools
import importlib
import linecache
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import kshot
from folders import edit
from kshot.extend import Classifier, MethodInfo
from kshot.methods import registry
from kshot.methods.code import code_hash

INFO = MethodInfo(key="h", title="h")


def session(source, **values):
    """The class Head of a notebook that ran this source in a cell."""
    cell = f"<cell {abs(hash(source))}>"
    linecache.cache[cell] = len(source), None, source.splitlines(keepends=True), cell
    names = {"functools": functools, "Classifier": Classifier, "INFO": INFO, "__name__": "session"} | values
    module = type(sys)("session")
    vars(module).update(names)
    sys.modules["session"] = module
    exec(compile(source, cell, "exec"), vars(module))
    return vars(module)["Head"]


def many(values):
    """A class with one method for each value, which is a global of the session."""
    methods = "".join(f"    def m{n}(self):\n        return G{n}\n" for n in range(len(values)))
    return session(f"class Head(Classifier):\n    info = INFO\n{methods}", **{f"G{n}": v for n, v in enumerate(values)})


class Config:
    def __init__(self, v):
        self.v = v


KINDS = {
    "number": float,
    "list": lambda v: [v],
    "array": lambda v: np.full(3, v),
    "long array": lambda v: np.where(np.arange(5000) == 2500, v, 0),
    "namespace": lambda v: SimpleNamespace(v=v),
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
    "lambda": lambda v: (lambda: 1) if v == 1 else (lambda: 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_count_by_what_they_hold(kind):
    def code(v):
        torch.manual_seed(0)
        return code_hash(many([KINDS[kind](1), KINDS[kind](v)]))

    assert code(1) == code(1) != code(2)


def test_what_has_no_state_is_no_obstacle():
    held = threading.Lock(), (x for x in [1]), sys.stdout, threading.current_thread()
    assert code_hash(many(list(held))) == code_hash(many(list(held)))


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
    assert code_hash(session(SOURCE.replace(was, now))) != code_hash(session(SOURCE))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("class Head(Base):", 'class Head(Base):\n    """Words."""\n'),
        ("return 0.5", "return  0.5  # half"),
        ("SCALE = Scale()", "SCALE = Scale()\ndef unrelated():\n    return 3\n"),
    ],
)
def test_words_layout_and_what_is_not_named_do_not_count(was, now):
    assert code_hash(session(SOURCE.replace(was, now))) == code_hash(session(SOURCE))


def test_a_class_without_source_is_like_no_other():
    names = {"Classifier": Classifier, "INFO": INFO, "__name__": "nowhere"}
    heads = []
    for _ in range(2):
        exec("class Head(Classifier):\n    info = INFO\n    def _fit(self, task): pass\n", names)
        heads.append(names["Head"])
    first, second = map(code_hash, heads)
    assert first != second
    assert first == code_hash(heads[0])


HEAD = """
{top}
from kshot.extend import Classifier, MethodInfo
class Half(Classifier):
    info = MethodInfo(key="h", title="h")
    def _fit(self, task):
        {inside}
        return {use}
"""


@pytest.mark.parametrize(
    ("top", "inside", "use"),
    [
        ("from tools_of_head.parts import factor", "pass", "factor()"),
        ("import tools_of_head.parts", "pass", "tools_of_head.parts.factor()"),
        ("from tools_of_head import parts as p", "pass", "p.factor()"),
        ("", "import tools_of_head.parts as p", "p.factor()"),
        ("", "from tools_of_head.parts import factor as f", "f()"),
        ("import tools_of_head.parts", "pass", "vars(tools_of_head.parts)"),
    ],
)
def test_files_beside_count_where_they_are_named(tmp_path, monkeypatch, top, inside, use):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "tools_of_head"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text("from tools_of_head.deep import VALUE\ndef factor():\n    return VALUE\n")
    (package / "deep.py").write_text("VALUE = 1\n")
    (tmp_path / "my_half.py").write_text(HEAD.format(top=top, inside=inside, use=use))

    def code():
        for name in [name for name in sys.modules if name.startswith(("tools_of_head", "my_half"))]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return registry.code_of("my_half:Half")

    codes = [code()]
    edit(package / "deep.py", "1", "10")
    codes.append(code())
    edit(package / "parts.py", "return VALUE", "return 2 * VALUE")
    codes.append(code())
    (package / "unrelated.py").write_text("x = 1\n")
    assert codes[2] == code()
    assert len(set(codes)) == 3
    edit(tmp_path / "my_half.py", 'title="h"', 'title="h", version=3')
    stated = code()
    edit(package / "deep.py", "10", "100")
    assert code() == stated == "version 3"


def test_values_that_a_session_set_in_its_modules_count(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "settings_of_head.py").write_text("RATIO = 0.0\n")
    settings = importlib.import_module("settings_of_head")
    source = "class Head(Classifier):\n    info = INFO\n    def _fit(self, task):\n        return settings.RATIO\n"
    before = code_hash(session(source, settings=settings))
    assert code_hash(session(source, settings=settings)) == before
    settings.RATIO = 1.0
    assert code_hash(session(source, settings=settings)) != before


def test_the_hash_is_the_same_in_every_process(tmp_path):
    lines = [
        "import numpy as np, re, functools",
        "from kshot.extend import Classifier, MethodInfo",
        "from kshot.methods.code import code_hash",
        "INFO = MethodInfo(key='h', title='h')",
        SOURCE.replace("return 2 * x", "return WORDS, PATTERN, RNG, PART, x"),
        "WORDS, PATTERN = {'a', 'b', 'c', 'd'}, re.compile('a')",
        "RNG, PART = np.random.default_rng(0), functools.partial(round, ndigits=2)",
        "print(code_hash(Head))",
    ]
    (tmp_path / "shown.py").write_text("\n".join(lines))
    run = [sys.executable, str(tmp_path / "shown.py")]
    printed = {subprocess.run(run, capture_output=True, text=True, check=True).stdout for _ in range(3)}
    assert len(printed) == 1
    assert re.fullmatch("[0-9a-f]{16}", printed.pop().strip())


def test_a_method_of_kshot_has_no_code_but_that_of_the_methods_that_it_names(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_inner.py").write_text(HEAD.format(top="", inside="pass", use="1"))
    assert registry.code_of("clap") == registry.code_of("kshot.methods.ncm:NCM") == ""
    calibrated = "kshot.methods.calibrated:Calibrated"
    assert registry.code_of(calibrated, {"method": "gda_alpha1"}) == ""
    assert registry.code_of(calibrated, {"method": "my_inner:Half"}) == registry.code_of("my_inner:Half") != ""


def test_parameters_of_an_object_count():
    one, other = (many([1])() for _ in range(2))
    assert registry.session_code(one) == registry.session_code(other)
    head = kshot.LPP(bias_init=[0.0, 1.0])
    assert registry.session_code(head) != registry.session_code(kshot.LPP(bias_init=[0.0, 2.0]))
