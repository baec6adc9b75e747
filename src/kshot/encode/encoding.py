"""Encode sources into the store, shard by shard, so that a killed run continues where it was."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kshot.data.features import Features, load_features
from kshot.data.format import Manifest, is_whole_shard, map_tensors, write_shard
from kshot.data.store import BUNDLED, Store, check_images
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.prompts import Prompts, encode_tiers, tier_prompts
from kshot.encode.protocol import Encoder
from kshot.encode.reference_vectors import hold_to_reference
from kshot.encode.sources import find_source
from kshot.encode.sources.held import held_dataset
from kshot.encode.sources.source import Picture, Shard
from kshot.encode.targets import Encoding, Target
from kshot.errors import FeatureError, InputError
from kshot.files import remove_torn, safe_name
from kshot.progress import Progress
from kshot.types import Array, Views

REFERENCE = ".reference"
logger = logging.getLogger("kshot")


class PictureBatch(NamedTuple):
    """Ids and labels of pictures, with their inputs for each encoder."""

    ids: list[str]
    labels: list[int]
    inputs: list[Sequence[Any]]


def check_reference(job: Encoding, store: Store) -> None:
    """Compare the encoder with the vectors it gave before, here or when the bundled features were made."""
    name = f"{job.backbone}.safetensors"
    hold_to_reference(job.encoder, job.backbone, [root / REFERENCE / name for root in (store.root, BUNDLED)])


def encode_dataset(
    data: Any,
    dataset: str,
    encoder: Encoder | str = "lite0",
    *,
    tiers: Sequence[str] = ("photo",),
    views: Views | None = None,
    features: Path | str = "features",
    batch: int = 32,
    threads: int = 2,
    device: str = "auto",
) -> Features:
    """Encode pictures and class names into the folder `features`, as `kshot encode` does, and return what is stored.

    Parameters
    ----------
    data : folder or dataset
        What `kshot encode` takes, a `datasets.Dataset` or `DatasetDict`, a torchvision dataset without a transform, a
        pandas frame with the columns path, label and perhaps part, or a dict of these by split (train, test).
    dataset : text
        Name to store under.
    encoder : Encoder or text
        An `Encoder`, or what `--backbone` takes.
    tiers : names
        Prompt tiers to encode; those of `kshot ls tiers`.
    """
    safe_name("dataset", dataset)
    source = (
        find_source(str(data)) if isinstance(data, str | Path) else held_dataset(data).source(f"{dataset} in memory")
    )
    loaded = load_encoder(encoder, device=device) if isinstance(encoder, str) else encoder
    prompts = tier_prompts(dataset, source, None, tiers if loaded.text else (), {})
    backbone = safe_name("backbone", stored_name(loaded.backbone))
    job = Encoding(dataset, backbone, source, loaded, batch=batch, threads=threads)
    encode_jobs([job], Store(Path(features)), views, prompts)
    return load_features(dataset, backbone, features=features)


def encode_jobs(jobs: Sequence[Encoding], store: Store, views: Views | None, prompts: Prompts) -> None:
    """Encode the pictures of one dataset with several encoders in one pass, then its prompts."""
    for job in jobs:
        check_reference(job, store)
    with Progress(f"pictures of {jobs[0].dataset}") as progress:
        encode_pictures(jobs, store, progress.advance, views)
    for job in jobs:
        if job.encoder.text:
            encode_tiers(job, store, prompts)


def encode_pictures(
    jobs: Sequence[Encoding], store: Store, progress: Callable[[int], None], views: Views | None = None
) -> list[Manifest]:
    """Encode all parts of the jobs' common source, and augmented views of those that supports are drawn from.

    Each shard is read for all encoders and views before the next one, so that it is fetched once. `progress` is called
    with the number of pictures in each finished batch and each shard that was there already.
    """
    remove_torn(store.root)
    source = jobs[0].source
    manifests = []
    for part in dict.fromkeys(shard.part for shard in source.shards()):
        drawn = views.count if views and part in ("pool", "all") else 0
        wanted = [("", 0), *((views.recipe, number) for number in range(drawn) if views)]
        shards = [shard for shard in source.shards() if shard.part == part]
        targets = [Target(job, store, part, recipe, number) for recipe, number in wanted for job in jobs]
        manifests += _encode_part(targets, shards, progress)
    return manifests


def _encode_part(targets: Sequence[Target], shards: Sequence[Shard], progress: Callable[[int], None]) -> list[Manifest]:
    found = {target: target.present() for target in targets}
    progress(sum(manifest.rows for manifest in found.values() if manifest))
    missing = [target for target, manifest in found.items() if manifest is None]
    try:
        for number, shard in enumerate(shards):
            for name in dict.fromkeys(target.name for target in missing):
                files = {t: t.file(number, shard) for t in missing if t.name == name}
                lacking = {t: file for t, file in files.items() if not is_whole_shard(file)}
                progress(sum(len(map_tensors(file)["labels"]) for t, file in files.items() if t not in lacking))
                if lacking:
                    _encode_shard(lacking, shard, progress)
        found |= {target: target.join(shards) for target in missing}
    except FeatureError:
        # Another process may have joined the same shards and removed them.
        found |= {target: target.present() for target in missing}
        if None in found.values():
            raise
    return [manifest for manifest in found.values() if manifest]


def _encode_shard(files: Mapping[Target, Path], shard: Shard, progress: Callable[[int], None]) -> None:
    """Decode the shard once and write a file for each target; the targets differ in their encoders only."""
    view, jobs = next(iter(files)), [target.job for target in files]
    source, preprocessings = view.job.source, [job.encoder.preprocessing for job in jobs]
    ids: list[str] = []
    labels: list[int] = []
    rows: list[list[Array]] = [[] for _ in jobs]

    def prepare(picture: Picture) -> list[Any]:
        return view.inputs(picture, preprocessings)

    for batch in _batches(source.pictures(shard), prepare, view.job.batch, view.job.threads):
        for own, job, inputs in zip(rows, jobs, batch.inputs, strict=True):
            own.append(job.encoder.encode_images(inputs).astype(np.float16))
        ids += batch.ids
        labels += batch.labels
        progress(len(batch.ids) * len(jobs))
    if not ids:
        raise FeatureError(f"shard {shard.key} of {source.origin} holds no pictures.")
    y = np.asarray(labels)
    for own, file in zip(rows, files.values(), strict=True):
        X = np.concatenate(own)
        check_images(X, y, ids, source.classes)
        write_shard(file, X, y, ids)


def _batches(
    pictures: Iterator[Picture], prepare: Callable[[Picture], list[Any]], size: int, threads: int
) -> Iterator[PictureBatch]:
    """Batches in the order of the pictures; while one is encoded, `threads` prepare the next.

    A picture that cannot be read is logged and left out, so a batch may be smaller, or none.
    """
    ahead: deque[list[tuple[Picture, Future[list[Any]]]]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        while batch := list(islice(pictures, size)):
            ahead.append([(picture, pool.submit(prepare, picture)) for picture in batch])
            if len(ahead) == 2:
                yield from _finished(ahead.popleft())
        while ahead:
            yield from _finished(ahead.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(waiting: list[tuple[Picture, Future[list[Any]]]]) -> Iterator[PictureBatch]:
    ids, labels, rows = [], [], []
    for picture, future in waiting:
        try:
            rows.append(future.result())
        except InputError as error:
            logger.warning("left out: %s", error)
            continue
        ids.append(picture.id)
        labels.append(picture.label)
    if ids:
        yield PictureBatch(ids, labels, list(zip(*rows, strict=True)))
