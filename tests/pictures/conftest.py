from functools import partial

import numpy as np
import pytest

from colours import ColourEncoder, write_shades
from kshot.pictures.fit import fit_folder
from kshot.pictures.photos import copy_sample


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KSHOT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def colours():
    return ColourEncoder()


@pytest.fixture
def fit(colours):
    """`fit_folder` with the stand-in encoder and a closed form, so that tests do not wait for a solver."""
    return partial(fit_folder, encoder=colours, method="loo_blend")


@pytest.fixture
def sample(tmp_path):
    copy_sample(tmp_path / "drawings")
    return tmp_path / "drawings"


@pytest.fixture
def shades(tmp_path):
    """Three classes of four pictures."""
    return write_shades(tmp_path / "shades", np.random.default_rng(0))
