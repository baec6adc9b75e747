"""Which pictures of a part are encoded: a capped pool, and augmented views of the pictures that some draw uses.

Both need the ids and labels of the whole part. These are read from stored features of any encoder, else from the
source, without decoding a picture.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from kshot.data.episode import cap_pool, drawn_rows, self_split
from kshot.data.store import Store
from kshot.encode.targets import Encoding
from kshot.types import Views

# (shots, seed, profile) of draws.
Draws = AbstractSet[tuple[int, int, str]]


def choose(
    jobs: Sequence[Encoding], store: Store, part: str, views: Mapping[Views, Draws | None], pool_cap: int | None
) -> tuple[frozenset[str] | None, dict[Views, frozenset[str] | None]]:
    """Ids of the pictures of a part that are encoded, and of those that views are made of; None stands for all.

    The pool holds at most `pool_cap` pictures of a class; views are made of what the draws use of it.
    """
    if part not in ("pool", "all"):
        return None, {}
    capped = pool_cap if part == "pool" else None
    if capped is None and all(draws is None for draws in views.values()):
        return None, dict.fromkeys(views)
    dataset, n_classes = jobs[0].dataset, len(jobs[0].source.classes)
    ids, y = _listing(jobs, store, part, capped)
    if part == "all":
        keep = self_split(dataset, ids, y)
    else:
        keep = np.ones(len(ids), bool) if capped is None else cap_pool(dataset, ids, y, capped)
    pool = tuple(name for name, here in zip(ids, keep, strict=True) if here)
    drawn = {
        asked: frozenset(pool[row] for row in drawn_rows(dataset, pool, y[keep], n_classes, draws)) if draws else None
        for asked, draws in views.items()
    }
    return None if capped is None else frozenset(pool), drawn


def _listing(
    jobs: Sequence[Encoding], store: Store, part: str, capped: int | None
) -> tuple[tuple[str, ...], np.ndarray]:
    for job in jobs:
        if store.has(job.dataset, job.backbone, part):
            stored = store.images(job.dataset, job.backbone, part)
            if stored.manifest.pool_cap in (None, capped):
                return stored.ids, np.array(stored.y)
    source = jobs[0].source
    pictures = [
        (picture.id, picture.label)
        for shard in source.shards()
        if shard.part == part
        for picture in source.pictures(shard)
    ]
    return tuple(name for name, _ in pictures), np.array([label for _, label in pictures])
