"""Pictures decoded ahead of the encoder by a few threads, never more than two batches at a time."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from kshot.encode.sources.source import Picture
from kshot.errors import InputError
from kshot.types import Array

logger = logging.getLogger("kshot")


class PictureBatch(NamedTuple):
    """Ids and labels of pictures, with their inputs (B, 3, H, W) for each encoder."""

    ids: list[str]
    labels: list[int]
    inputs: list[Array]


def picture_batches(
    pictures: Iterable[Picture], prepare: Callable[[Picture], list[Array]], size: int, threads: int
) -> Iterator[PictureBatch]:
    """Batches in the order of the pictures, whatever thread was first; `prepare` gives one input for each encoder.

    A picture that cannot be read is told and left out, so a batch may be smaller, or none.
    """
    waiting: deque[tuple[Picture, Future[list[Array]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for picture in pictures:
                waiting.append((picture, pool.submit(prepare, picture)))
                if len(waiting) == 2 * size:
                    yield from _take(waiting, size)
            while waiting:
                yield from _take(waiting, min(size, len(waiting)))
        finally:
            for _, future in waiting:
                future.cancel()


def _take(waiting: deque[tuple[Picture, Future[list[Array]]]], size: int) -> Iterator[PictureBatch]:
    ids, labels, rows = [], [], []
    for picture, future in [waiting.popleft() for _ in range(size)]:
        try:
            rows.append(future.result())
        except InputError as error:
            logger.warning("left out: %s", error)
            continue
        ids.append(picture.id)
        labels.append(picture.label)
    if ids:
        yield PictureBatch(ids, labels, [np.stack(own) for own in zip(*rows, strict=True)])
