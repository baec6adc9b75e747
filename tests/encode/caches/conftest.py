import numpy as np
import pytest


@pytest.fixture
def imported(kshot):
    """Runs `kshot import` in an empty folder; returns exit code, output and error text."""

    def call(*arguments):
        done = kshot("import", *arguments)
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.fixture
def arrays():
    """A small dataset: 3 classes, 16 dimensions, unit rows."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 16))

    def unit(rows):
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def part(per_class):
        y = np.repeat(np.arange(3), per_class)
        return unit(centres[y] + 0.5 * rng.normal(size=(len(y), 16))), y

    (X, y), (Xt, yt) = part(8), part(10)
    return {"X": X, "y": y, "Xt": Xt, "yt": yt, "T": unit(centres), "names": np.array(["cat", "dog", "fox"])}
