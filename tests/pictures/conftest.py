import subprocess
import sys

import numpy as np
import pytest

from colours import COLOURS, ColourEncoder, shade
from kshot.pictures.photos import copy_sample


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def colours():
    return ColourEncoder()


@pytest.fixture
def sample(tmp_path):
    copy_sample(tmp_path / "drawings")
    return tmp_path / "drawings"


@pytest.fixture
def kshot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return subprocess.run([sys.executable, "-m", "kshot", *arguments], capture_output=True, text=True)

    return call


@pytest.fixture
def shades(tmp_path):
    """Three classes of four pictures."""
    rng = np.random.default_rng(0)
    for colour in COLOURS:
        for number in range(4):
            shade(tmp_path / "shades" / colour / f"{number}.png", colour, rng)
    return tmp_path / "shades"
