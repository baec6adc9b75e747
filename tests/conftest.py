"""Shared fixtures; `../shared` is read where it exists and never required."""

import os
import sys
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from hypothesis import settings

from steady_study import METHOD, STUDY

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# Minutes long, so that the other worker does the rest meanwhile.
FIRST = "paper/test_from_nothing.py"


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.as_posix().endswith(FIRST))


# How long an example takes says more about the machine than about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def published() -> Path:
    folder = SHARED / "published"
    if not folder.is_dir():
        pytest.skip("the study's published tables are not beside the repository")
    return folder


@pytest.fixture(scope="session")
def cars() -> dict[str, np.ndarray]:
    """Real CLIP features of Stanford Cars."""
    path = SHARED / "real" / "stanford_cars_vitb32.npz"
    if not path.is_file():
        pytest.skip("the real features are not beside the repository")
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real CLIP features."""
    if not (SHARED / "real").is_dir():
        pytest.skip("the real features are not beside the repository")
    return SHARED / "real"


@pytest.fixture(scope="session")
def official() -> Path:
    """Outputs of the official codes, of which tests/reference holds small copies."""
    folder = SHARED / "reference"
    if not folder.is_dir():
        pytest.skip("the official codes' outputs are not beside the repository")
    return folder


@pytest.fixture
def steady(tmp_path, monkeypatch):
    """Writes the study into an empty folder; returns a function that sets its size and the seconds of a cell."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    def write(seeds: int, seconds: float) -> None:
        Path("steady.toml").write_text(STUDY.format(seeds=list(range(seeds))))
        Path("steady.py").write_text(METHOD)
        Path("seconds.txt").write_text(str(seconds))

    return write


@pytest.fixture
def kshot(tmp_path, monkeypatch, capsys):
    """Call a command in an empty folder, in this process, which has imported torch already."""
    from kshot.cli.main import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["kshot", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return CompletedProcess(arguments, ended.value.code or 0, *capsys.readouterr())

    return call
