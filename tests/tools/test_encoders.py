"""The geometry of a pool against the one it was drawn from, and the same shots for every encoder."""

import numpy as np
import pytest
from tools.encoders import Pictures, accuracies, geometry, published_dimensions

from kshot.types import Labelled


def test_geometry_of_known_classes():
    rng = np.random.default_rng(0)
    C, n, d, sigma = 40, 60, 30, 0.1
    centres = np.r_[[2.0], np.zeros(d - 1)] + 0.3 * rng.normal(size=(C, d))
    y = np.repeat(np.arange(C), n)
    found = geometry(Labelled(centres[y] + sigma * rng.normal(size=(C * n, d)), y))
    centre = centres.mean(axis=0)
    assert found.common == pytest.approx(centre @ centre, rel=0.01)
    assert found.between == pytest.approx(((centres - centre) ** 2).sum() / (C - 1), rel=0.01)
    assert found.scatter == pytest.approx(d * sigma**2, rel=0.02)
    assert found.d_eff == pytest.approx(d, rel=0.1)


def test_an_encoder_has_no_say_in_the_shots():
    """A rotation of all features is another encoder that knows the same: every head answers alike."""
    rng = np.random.default_rng(1)
    y, labels = np.repeat(np.arange(5), 8), np.repeat(np.arange(5), 20)
    centres = rng.normal(size=(5, 16))
    X, Q = (centres[of] + rng.normal(size=(len(of), 16)) for of in (y, labels))
    X, Q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Q))
    turn = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    one, other = (
        accuracies(Pictures("a", "b", "test", Labelled(X @ by, y), Labelled(Q @ by, labels)), 4, 0)
        for by in (np.eye(16), turn)
    )
    assert one == other
    assert min(one) > 30


def test_the_papers_dimensions_are_found():
    assert published_dimensions()["fgvc-aircraft", "RN50"] == "32"
