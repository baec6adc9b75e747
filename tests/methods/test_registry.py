import numpy as np
import pytest
from safetensors.numpy import save_file

import kshot
from kshot import CLAP, ZeroShot
from kshot.errors import InputError, KshotError
from kshot.methods import registry
from kshot.methods.headfile import load_head, read_head_file, save_head
from kshot.types import Choice
from problems import problem


class Outsider(ZeroShot):
    """A method from another package."""


class Demanding(ZeroShot):
    """Cannot be made without being told how strong."""

    def __init__(self, strength):
        self.strength = strength


def test_typo_gets_the_nearest_names():
    with pytest.raises(KshotError, match=r"unknown method 'lo_blend'\. Did you mean loo_blend"):
        registry.create("lo_blend")


def test_outsider_by_path():
    assert type(registry.create("test_registry:Outsider")).__name__ == "Outsider"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_package:Class", "cannot import 'no_such_package'"),
        ("test_registry:Missing", "has no class 'Missing'"),
        ("test_registry:pytest", "is not a kshot.methods.base.Classifier"),
        ("test_registry:Demanding", "cannot make method 'test_registry:Demanding': TypeError: .*'strength'.* default"),
    ],
)
def test_bad_paths(path, message):
    with pytest.raises(KshotError, match=message):
        registry.create(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("import json\njson.dupms", "AttributeError: module 'json' has no attribute 'dupms'"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("raise RuntimeError('one\\ntwo')", "RuntimeError: one two"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(tmp_path, monkeypatch, content, reason):
    name = "does_not_import"
    (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KshotError, match=f"cannot import '{name}' of method '{name}:A': {reason}") as raised:
        registry.create(f"{name}:A")
    assert "\n" not in str(raised.value)
    assert f"python -c 'import {name}'" in str(raised.value)


def test_entry_points(monkeypatch):
    monkeypatch.setattr(registry, "_installed", lambda: {"theirs": "test_registry:Outsider"})
    assert "theirs" in registry.names()
    assert type(registry.create("theirs")).__name__ == "Outsider"


def test_head_of_an_unregistered_method_is_built_only_on_request(tmp_path):
    head = Outsider().fit(text=problem().text)
    save_head(head, tmp_path / "head", method="test_registry:Outsider", author="me")
    with pytest.raises(InputError, match="not registered"):
        load_head(tmp_path / "head")
    assert type(load_head(tmp_path / "head", method="test_registry:Outsider")).__name__ == "Outsider"
    assert read_head_file(tmp_path / "head").provenance == {"author": "me"}


def test_files_that_are_not_heads(tmp_path):
    (tmp_path / "noise").write_bytes(b"\x00" * 100)
    with pytest.raises(InputError, match="not a kshot head file"):
        load_head(tmp_path / "noise")
    with pytest.raises(InputError, match="no head file"):
        load_head(tmp_path / "absent")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{}", "is not a kshot head file"),
        ("[1]", "is not a kshot head file"),
        ('{"format": 1}', "has head format 1; this kshot reads format 3"),
        (
            '{"format": 3, "method": "ncm", "params": {}}',
            "is a damaged head file: its header lacks selected, state, provenance",
        ),
    ],
)
def test_headers_that_are_not_ours(tmp_path, header, message):
    save_file({"coef_": np.zeros((2, 3))}, tmp_path / "head", {"kshot": header})
    with pytest.raises(InputError, match=message):
        load_head(tmp_path / "head")


def test_numpy_values_in_a_head_are_stored_as_plain_ones(tmp_path):
    given = problem()
    head = CLAP(seed=1, epochs=3).fit(given.X, given.y, text=given.text)
    head.set_params(seed=np.int64(1), lr=np.float32(0.5))
    head.selected_["note"] = Choice(np.float32(0.5), "support")
    save_head(head, tmp_path / "head")
    read = load_head(tmp_path / "head")
    found = read.get_params()
    assert [(type(found[name]), found[name]) for name in ("seed", "lr")] == [(int, 1), (float, 0.5)]
    assert read.selected_["note"] == Choice(0.5, "support")
    assert (read.decision_function(given.test.X) == head.decision_function(given.test.X)).all()


def test_what_a_head_file_cannot_hold_is_said(tmp_path):
    head = Demanding(object()).fit(text=problem().text)
    with pytest.raises(InputError, match=r"a parameter cannot be kept \(object is not JSON\)"):
        save_head(head, tmp_path / "head")
    assert not list(tmp_path.iterdir())


def test_unfitted_heads_say_so(tmp_path):
    with pytest.raises(InputError, match="not fitted"):
        ZeroShot().predict(problem().X)
    with pytest.raises(InputError, match="not fitted"):
        save_head(ZeroShot(), tmp_path / "head")
    assert not list(tmp_path.iterdir())


def test_kinds_of_heads_divide_all_of_them():
    parts = [name for kind in ("free", "transductive", "reference") for name in kshot.heads(kind)]
    assert sorted(parts) == sorted(kshot.heads("all")) == sorted(registry.names())
    assert all(registry.info(name).sees <= {"text", "support"} for name in kshot.heads("free"))
    with pytest.raises(InputError, match=r"kind of head 'fre'\. Did you mean free"):
        kshot.heads("fre")


def test_a_kind_stands_for_its_heads_where_heads_are_given():
    from kshot.bench.heads import method_specs

    assert [spec.use for spec in method_specs("free")] == kshot.heads("free")
