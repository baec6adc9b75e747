"""Files in the current folder that are called like libraries: a study runs as if they were not there."""

import subprocess
import sys
from pathlib import Path

import pytest

# Of kshot's libraries, and of Python itself: what starts workers imports some of it before any code of ours.
NAMES = ("pyarrow", "numpy", "polars", "distributed", "typer", "pickle", "signal", "random", "heapq", "socket")
SPY = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nraise SystemExit(3)\n"
OWN = "from kshot import NCM\n\nclass Own(NCM):\n    pass\n"
STUDY = """
name = "tiny"
datasets = ["sim-satellite"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1]
seeds = [0]
methods = ["zero_shot", "own:Own"]
"""
KSHOT = [[sys.executable, "-m", "kshot"], [str(Path(sys.executable).with_name("kshot"))]]


@pytest.mark.parametrize("command", KSHOT, ids=["python -m kshot", "kshot"])
def test_no_module_of_the_current_folder_takes_the_place_of_a_library(tmp_path, command):
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(SPY)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "tiny.toml").write_text(STUDY)
    done = subprocess.run(
        [*command, "run", "tiny.toml", "--workers", "1"], cwd=tmp_path, capture_output=True, text=True
    )
    assert not list(tmp_path.glob("*.ran"))
    assert done.returncode == 0, done.stderr
    assert "2/2 records" in done.stdout
