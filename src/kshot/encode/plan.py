"""What an encoding still has to do, and what it costs on this machine."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from kshot.data.catalog import dataset_entry
from kshot.data.store import Store
from kshot.encode.blocks import Block, lacking
from kshot.encode.encoding import targets_of
from kshot.encode.hub import is_url
from kshot.encode.protocol import Encoder
from kshot.encode.sources.source import Listed
from kshot.encode.targets import Draws, Encoding
from kshot.progress import human_seconds
from kshot.types import Views

TRIED = 32


def plan_lines(
    jobs: Sequence[Encoding], store: Store, views: Mapping[Views, Draws | None], workers: int
) -> Iterator[str]:
    """Sentences on the blocks that are missing: pictures to decode and to encode, hours by encoder, bytes on disk.

    Hours are measured: each encoder and the decoder are tried on a batch. Shards of a hub are not fetched for that, the
    catalog counts their pictures.
    """
    dataset, source = jobs[0].dataset, jobs[0].source
    decoded, shards_left, rows = 0, 0, {job.backbone: 0 for job in jobs}
    for shards, targets in targets_of(jobs, store, views):
        missing = [target for target in targets if target.present() is None]
        blocks = [Block(shard, {t: t.file(number, shard) for t in missing}) for number, shard in enumerate(shards)]
        left = lacking([block for block in blocks if block.files])
        shards_left += len(left)
        for block in left:
            pictures = _pictures(jobs[0], block, len(source.shards()))
            decoded += pictures
            for target in block.files:
                rows[target.job.backbone] += pictures
    if not shards_left:
        yield f"{dataset}: everything is encoded."
        return
    decoding = _seconds_to_decode(jobs[0])
    yield (
        f"{dataset}: {decoded:,} pictures in {shards_left} blocks to decode once"
        f"{f', {human_seconds(decoding * decoded)} on one core' if decoding else ' (as the catalog counts them)'}"
        f"{_fetched(source.origin, dataset)}."
    )
    for job in jobs:
        count = rows[job.backbone]
        seconds = count * _seconds_to_encode(job.encoder, job.batch)
        device = getattr(job.encoder, "device", "this process")
        yield (
            f"  {job.backbone}: {count:,} pictures and views, {human_seconds(seconds)} on {device}, "
            f"{human_seconds(seconds / workers)} with {workers} worker{'s' * (workers > 1)} as fast; "
            f"{count * job.encoder.dim * 2 / 1e9:.2f} GB of features."
        )


def _fetched(origin: str, dataset: str) -> str:
    entry = dataset_entry(dataset)
    size = f" of {entry.gigabytes:g} GB" if entry and entry.gigabytes else ""
    return f"; shards{size} are fetched one ahead and removed" if is_url(origin) else ""


def _pictures(job: Encoding, block: Block, n_shards: int) -> int:
    if isinstance(job.source, Listed):
        return sum(1 for _ in job.source.pictures(block.shard))
    entry = dataset_entry(job.dataset)
    return round(sum(filter(None, (entry.n_pool, entry.n_test))) / n_shards) if entry else 0


def _seconds_to_decode(job: Encoding) -> float:
    """Seconds per picture, decoded and prepared; 0 where no picture is at hand."""
    if not isinstance(job.source, Listed):
        return 0.0
    pictures: list[Any] = list(islice(job.source.rows, TRIED))
    start = time.perf_counter()
    for picture in pictures:
        job.encoder.preprocessing(picture.load())
    return (time.perf_counter() - start) / len(pictures)


def _seconds_to_encode(encoder: Encoder, batch: int) -> float:
    """Seconds per picture of the encoder alone."""
    from PIL import Image

    inputs = [encoder.preprocessing(Image.fromarray(np.zeros((256, 256, 3), np.uint8)))] * batch
    encoder.encode_images(inputs)
    start = time.perf_counter()
    encoder.encode_images(inputs)
    return (time.perf_counter() - start) / batch
