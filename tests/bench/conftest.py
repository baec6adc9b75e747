import shutil
import tomllib
from pathlib import Path

import pytest

from folders import fill
from kshot.bench.records import Records
from kshot.bench.study import parse_study

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


@pytest.fixture(scope="session")
def computed(tmp_path_factory) -> Path:
    """The small study's features and records, computed once for every test that begins with them."""
    place = tmp_path_factory.mktemp("computed")
    study, found = parse_study(tomllib.loads(STUDY), "small.toml"), Records(place / "records")
    fill(study, place / "features", found)
    return place


@pytest.fixture
def records(folder, computed):
    """A copy of one's own."""
    shutil.copytree(computed, folder, dirs_exist_ok=True)
    return Records(folder / "records")
