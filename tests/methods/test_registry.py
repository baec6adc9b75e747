import pytest

from kshot import ZeroShot
from kshot.errors import InputError, KshotError
from kshot.methods import registry
from kshot.methods.headfile import load_head, provenance, save_head
from problems import problem


class Outsider(ZeroShot):
    """A method from another package."""


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
    ],
)
def test_bad_paths(path, message):
    with pytest.raises(KshotError, match=message):
        registry.create(path)


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
    assert provenance(tmp_path / "head") == {"author": "me"}


def test_files_that_are_not_heads(tmp_path):
    (tmp_path / "noise").write_bytes(b"\x00" * 100)
    with pytest.raises(InputError, match="not a kshot head file"):
        load_head(tmp_path / "noise")
    with pytest.raises(InputError, match="no head file"):
        load_head(tmp_path / "absent")


def test_unfitted_heads_say_so(tmp_path):
    with pytest.raises(InputError, match="not fitted"):
        ZeroShot().predict(problem().X)
    with pytest.raises(InputError, match="not fitted"):
        save_head(ZeroShot(), tmp_path / "head")
    assert not list(tmp_path.iterdir())
