from pathlib import Path

import pytest

from kshot.bench.execution.engines.local import LocalEngine
from kshot.bench.execution.run import compute, open_run
from kshot.bench.records.folder import Records
from kshot.bench.study import load_study

STUDY = """
name = "small"
datasets = ["sim-satellite", "sim-pets"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1, 2]
seeds = [0, 1, 2]
methods = ["zero_shot", "ncm", "loo_blend"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty working folder with a small study in it."""
    (tmp_path / "small.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def records(folder):
    study = load_study("small.toml")
    found = Records(folder / "records")
    compute(open_run(study, folder / "features", found), folder / "features", found, LocalEngine(2))
    return found
