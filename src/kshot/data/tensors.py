"""Files of tensors in the safetensors format: mapped for reading, and written or hashed without a second copy.

The library copies every tensor into memory on both ways. Its layout is kept byte for byte, so that features in memory
have the hash of their file.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import FeatureError
from kshot.types import Array

# What the files hold, by safetensors' names, in the order in which the library lays them out.
DTYPES = {"F64": np.float64, "F32": np.float32, "I32": np.int32, "F16": np.float16, "U8": np.uint8}
CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
# Bytes that are hashed at once.
BLOCK = 1 << 24

# Tensors by name, each in pieces that follow one another along the first axis.
Pieces = Mapping[str, Sequence[Array]]


def map_tensors(path: Path) -> dict[str, Array]:
    """Every tensor of a file of the store as a read-only memory map.

    The safetensors library copies tensors into memory, and of a pool's views only the rows of the shots are read.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size:
                raise ValueError("the header is longer than the file")
            header = json.loads(file.read(length))
        whole = np.memmap(path, np.uint8, "r")
        return {name: _view(whole, 8 + length, entry) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FeatureError(f"{path} is not a readable safetensors file ({error}).") from error


def _view(whole: Array, start: int, entry: Any) -> Array:
    low, high = entry["data_offsets"]
    flat = whole[start + low : start + high]
    return flat.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])


def image_tensors(X: Float[Array, "N d"], y: Int[Array, " N"], ids: Sequence[str]) -> dict[str, Array]:
    """Features, labels and ids as they lie in a file."""
    return {
        "features": np.ascontiguousarray(X),
        "labels": y.astype(np.int32),
        "ids": np.frombuffer("\n".join(ids).encode(), np.uint8),
    }


def read_ids(tensors: dict[str, Array]) -> tuple[str, ...]:
    return tuple(tensors["ids"].tobytes().decode().split("\n"))


def write_tensors(path: Path, pieces: Pieces, spaces: bool = False) -> None:
    """Write a file; `spaces` writes the header as files of joined shards have had it from the first version on."""
    with path.open("wb") as file:
        for block in _blocks(pieces, spaces):
            file.write(block)


def tensors_sha256(pieces: Pieces) -> str:
    """The hash that a file of these tensors would have."""
    state = hashlib.sha256()
    for block in _blocks(pieces, False):
        state.update(block)
    return state.hexdigest()


def _blocks(pieces: Pieces, spaces: bool) -> Iterator[Any]:
    order = sorted(pieces, key=lambda name: (list(DTYPES).index(CODES[pieces[name][0].dtype]), name))
    header, start = {}, 0
    for name in order:
        first = pieces[name][0]
        shape = [sum(map(len, pieces[name])), *first.shape[1:]]
        end = start + first.itemsize * math.prod(shape)
        header[name] = {"dtype": CODES[first.dtype], "shape": shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=None if spaces else (",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        for piece in pieces[name]:
            step = max(1, BLOCK // max(1, piece[:1].nbytes))
            for low in range(0, len(piece), step):
                yield np.ascontiguousarray(piece[low : low + step]).reshape(-1).view(np.uint8).data
