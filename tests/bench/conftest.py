from pathlib import Path

import pytest

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
