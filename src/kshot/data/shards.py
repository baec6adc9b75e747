"""Shards of a part that is being encoded: kept files, joined into one when all are there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.data.store import Manifest, Store, Where, check_ids
from kshot.data.tensors import image_tensors, map_tensors, read_ids, write_tensors
from kshot.files import seal_tensors, unseal_tensors, write_bytes
from kshot.types import Array


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
    return store.write_part(where, lambda path: write_tensors(path, _pieces(shards), spaces=True), like, classes, about)


def _pieces(shards: Sequence[Path]) -> dict[str, list[Array]]:
    mapped = [map_tensors(path) for path in shards]
    line_break = np.frombuffer(b"\n", np.uint8)
    ids = [piece for tensors in mapped for piece in (line_break, tensors["ids"])][1:]
    return {name: [tensors[name] for tensors in mapped] for name in ("labels", "features")} | {"ids": ids}
