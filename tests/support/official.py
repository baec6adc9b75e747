"""Outputs of the official codes, and what it means to agree with them."""

from pathlib import Path

import numpy as np

COPIES = Path(__file__).parents[1] / "reference"
BOTH = [("f64", np.float64), ("f32", np.float32)]


def stored(name: str, folder: Path = COPIES) -> dict[str, np.ndarray]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


def unit(rows, dtype):
    rows = rows.astype(dtype)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def inputs(case: str, dtype, folder: Path = COPIES) -> dict[str, np.ndarray]:
    data = stored(f"inputs_{case}", folder)
    return {key: value if value.dtype == np.int64 else unit(value, dtype) for key, value in data.items()}


def agree(found, expected, dtype, float32_tolerance):
    assert found.dtype == dtype
    error = np.abs(found - expected).max()
    assert error <= (1e-8 * np.abs(expected).max() if dtype == np.float64 else float32_tolerance)
