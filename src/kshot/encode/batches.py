"""Pictures decoded ahead of the encoder by a few threads, never more than two batches at a time."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from kshot.encode.sources.source import Picture
from kshot.types import Array


class PictureBatch(NamedTuple):
    """Ids and labels of pictures, with their inputs (B, 3, H, W) for each encoder."""

    ids: list[str]
    labels: list[int]
    inputs: list[Array]


def picture_batches(
    pictures: Iterable[Picture], prepare: Callable[[Picture], list[Array]], size: int, threads: int
) -> Iterator[PictureBatch]:
    """Batches in the order of the pictures, whatever thread was first; `prepare` gives one input for each encoder."""
    waiting: deque[tuple[Picture, Future[list[Array]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for picture in pictures:
                waiting.append((picture, pool.submit(prepare, picture)))
                if len(waiting) == 2 * size:
                    yield _take(waiting, size)
            while waiting:
                yield _take(waiting, min(size, len(waiting)))
        finally:
            for _, future in waiting:
                future.cancel()


def _take(waiting: deque[tuple[Picture, Future[list[Array]]]], size: int) -> PictureBatch:
    own = [waiting.popleft() for _ in range(size)]
    inputs = [np.stack(rows) for rows in zip(*(future.result() for _, future in own), strict=True)]
    return PictureBatch([p.id for p, _ in own], [p.label for p, _ in own], inputs)
