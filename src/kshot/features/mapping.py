"""Safetensors files mapped into memory, so that workers share one copy and read only what they use."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from kshot.errors import FeatureError
from kshot.types import Array

_DTYPES = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "BF16": np.uint16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U8": np.uint8,
}


def map_tensors(path: Path) -> dict[str, Array]:
    """Every tensor of a file as a read-only memory map.

    The safetensors library copies tensors into memory when asked for numpy arrays; its format (a length, a
    JSON header, the raw bytes) is simple enough to map directly.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size:
                raise ValueError("the header is longer than the file")
            header = json.loads(file.read(length))
        whole = np.memmap(path, np.uint8, "r")
        return {
            name: _view(whole, 8 + length, entry) for name, entry in header.items() if name != "__metadata__"
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FeatureError(f"{path} is not a readable safetensors file ({error}).") from error


def _view(whole: Array, start: int, entry: Any) -> Array:
    low, high = entry["data_offsets"]
    flat = whole[start + low : start + high]
    values = flat.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return from_bfloat16(values) if entry["dtype"] == "BF16" else values


def from_bfloat16(bits: Array) -> Array:
    """float32 values of bfloat16 numbers, which numpy lacks: the upper half of their bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
