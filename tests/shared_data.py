"""Data that lives beside the repository, never inside it; tests that need it skip where it is absent."""

from pathlib import Path

import numpy as np
import pytest

SHARED = Path(__file__).parents[2] / "shared"


def shared(name: str) -> dict[str, np.ndarray]:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"../shared/{name} is not here")
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
