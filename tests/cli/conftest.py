import shutil
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """
name = "tiny"
datasets = ["sim-satellite"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1, 2]
seeds = [0]
methods = ["zero_shot", "ncm", "oracle_lambda"]
"""


def call(*arguments):
    return subprocess.run([sys.executable, "-m", "kshot", *arguments], capture_output=True, text=True)


@pytest.fixture
def kshot(tmp_path, monkeypatch):
    """Run the command in an empty folder that holds tiny.toml."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(STUDY)
    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Folder in which tiny.toml was run once."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("tiny.toml").write_text(STUDY)
        done = call("run", "tiny.toml")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def ran(kshot, finished):
    """Run the command in a copy of the finished folder."""
    shutil.copytree(finished, ".", dirs_exist_ok=True)
    return kshot
