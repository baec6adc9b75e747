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


@pytest.fixture
def kshot(tmp_path, monkeypatch):
    """Runs the command in an empty folder that holds tiny.toml."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(STUDY)

    def call(*arguments):
        return subprocess.run([sys.executable, "-m", "kshot", *arguments], capture_output=True, text=True)

    return call
