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

# Left to `make test-ci`: what needs a browser, SLURM or a second user, what holds the docs to commands and records, and
# what takes long on two cores.
CI_ONLY = (
    "browser/",
    "bench/engines/",
    "bench/test_scripts.py",
    "bench/test_side_by_side.py",
    "bench/test_extend.py",
    "campaigns/",
    "cli/test_bad_input.py",
    "cli/test_changed_code.py",
    "cli/test_judge.py",
    "cli/test_run_on.py",
    "cli/test_terminal.py",
    "docs/",
    "encode/caches/test_two_commands.py",
    "encode/test_documented_commands.py",
    "encode/test_openclip.py",
    "package/test_wheel.py",
    "paper/test_from_nothing.py",
    "paper/test_rehearsal.py",
    "paper/test_reproduce.py",
    "paper/test_verdict.py",
    "pictures/test_other_user.py",
    "theory/test_mutations.py",
)


# Minutes long, so that the other worker does the rest meanwhile.
FIRST = "paper/test_from_nothing.py"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.relative_to(ROOT / "tests").as_posix().startswith(CI_ONLY):
            item.add_marker("ci")
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
