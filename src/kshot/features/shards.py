"""Encoded shards on their way into one feature file: written one by one, joined without holding them in memory."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from kshot.features.mapping import map_tensors
from kshot.files import write_bytes
from kshot.types import Array

_NAMES = {"float16": "F16", "float32": "F32", "float64": "F64", "int32": "I32", "uint8": "U8"}


def image_tensors(X: Float[Array, "N d"], y: Int[Array, " N"], ids: Sequence[str]) -> dict[str, Array]:
    """Features, labels and ids as they lie in a file."""
    return {
        "features": np.ascontiguousarray(X),
        "labels": y.astype(np.int32),
        "ids": np.frombuffer("\n".join(ids).encode(), np.uint8),
    }


def read_ids(tensors: dict[str, Array]) -> tuple[str, ...]:
    return tuple(tensors["ids"].tobytes().decode().split("\n"))


def write_shard(path: Path, X: Float[Array, "N d"], y: Int[Array, " N"], ids: Sequence[str]) -> None:
    from safetensors.numpy import save

    write_bytes(path, save(image_tensors(X, y, ids)))


def join_shards(shards: Sequence[Path], target: Path) -> None:
    """One safetensors file from many, straight from their memory maps; labels first keeps all aligned."""
    mapped = [map_tensors(path) for path in shards]
    rows = sum(len(tensors["labels"]) for tensors in mapped)
    features = mapped[0]["features"]
    id_bytes = sum(tensors["ids"].size for tensors in mapped) + len(mapped) - 1
    layout = {
        "labels": ("int32", [rows], rows * 4),
        "features": (str(features.dtype), [rows, features.shape[1]], rows * features[0].nbytes),
        "ids": ("uint8", [id_bytes], id_bytes),
    }
    header, start = {}, 0
    for name, (dtype, shape, size) in layout.items():
        header[name] = {"dtype": _NAMES[dtype], "shape": shape, "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with target.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in layout:
            for number, path in enumerate(shards):
                if name == "ids" and number:
                    file.write(b"\n")
                file.write(map_tensors(path)[name].reshape(-1).view(np.uint8).data)
