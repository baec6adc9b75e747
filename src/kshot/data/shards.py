"""Shards of a part that is being encoded: kept files, joined into one when all are there."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.data.store import DTYPES, Manifest, Rows, Store, Where, check_ids, image_tensors, map_tensors, read_ids
from kshot.files import seal_tensors, unseal_tensors, write_bytes
from kshot.types import Array

_CODES = {np.dtype(dtype).name: code for code, dtype in DTYPES.items()}


def write_shard(path: Path, X: Float[Array, "N d"], y: Int[Array, " N"], ids: Sequence[str]) -> None:
    write_bytes(path, seal_tensors(image_tensors(X, y, ids), {}))


def is_whole_shard(path: Path) -> bool:
    """Whether a kept shard is byte for byte what was written."""
    try:
        unseal_tensors(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def join_shards(store: Store, where: Where, shards: Sequence[Path], classes: Sequence[str], **about: Any) -> Manifest:
    """Store the pictures of these files, each of which was checked, without loading them all."""
    shards = [path for path in shards if len(map_tensors(path)["labels"])]
    ids = [name for path in shards for name in read_ids(map_tensors(path))]
    check_ids(ids)
    first = map_tensors(shards[0])["features"][:1]
    like = np.broadcast_to(first, (len(ids), first.shape[1]))
    return store.write_part(where, lambda path: _join(shards, like, path), like, classes, about)


def _join(shards: Sequence[Path], like: Rows, target: Path) -> None:
    """Write one safetensors file straight from the memory maps of many; labels first keeps all aligned."""
    rows, dim = like.shape
    id_bytes = sum(map_tensors(path)["ids"].size for path in shards) + len(shards) - 1
    layout = {
        "labels": (np.dtype(np.int32), [rows]),
        "features": (like.dtype, [rows, dim]),
        "ids": (np.dtype(np.uint8), [id_bytes]),
    }
    header, start = {}, 0
    for name, (dtype, shape) in layout.items():
        end = start + dtype.itemsize * math.prod(shape)
        header[name] = {"dtype": _CODES[dtype.name], "shape": shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with target.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in layout:
            for number, path in enumerate(shards):
                if name == "ids" and number:
                    file.write(b"\n")
                file.write(map_tensors(path)[name].reshape(-1).view(np.uint8).data)
