"""Encode sources into the store, shard by shard, so that a killed run continues where it was."""

import logging
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kshot.data.features import Features, load_features
from kshot.data.shards import is_whole_shard, write_shard
from kshot.data.store import BUNDLED, Manifest, Store, check_images, map_tensors
from kshot.encode.chosen import Draws, choose
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.prompts import Prompts, encode_tiers, tier_prompts
from kshot.encode.protocol import Encoder
from kshot.encode.reference_vectors import hold_to_reference
from kshot.encode.sources import find_source
from kshot.encode.sources.held import held_dataset
from kshot.encode.sources.source import Picture, Shard
from kshot.encode.targets import Decoded, Encoding, Target
from kshot.errors import FeatureError, InputError
from kshot.files import remove_torn, safe_name
from kshot.progress import Progress
from kshot.types import Array, Views

REFERENCE = ".reference"
logger = logging.getLogger("kshot")


class PictureBatch(NamedTuple):
    """Pictures of one batch that these targets, which differ in their encoders only, want."""

    targets: Sequence[Target]
    pictures: Sequence[Decoded]


class ShardRows(NamedTuple):
    """What one target has of a shard."""

    ids: list[str]
    labels: list[int]
    features: list[Array]


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
    encode_jobs([job], Store(Path(features)), {} if views is None else {views: None}, prompts)
    return load_features(dataset, backbone, features=features)


def encode_jobs(jobs: Sequence[Encoding], store: Store, views: Mapping[Views, Draws | None], prompts: Prompts) -> None:
    """Encode the pictures of one dataset with several encoders in one pass, then its prompts."""
    for job in jobs:
        check_reference(job, store)
    with Progress(f"pictures of {jobs[0].dataset}") as progress:
        encode_pictures(jobs, store, progress.advance, views)
    for job in jobs:
        if job.encoder.text:
            encode_tiers(job, store, prompts)


def encode_pictures(
    jobs: Sequence[Encoding],
    store: Store,
    progress: Callable[[int], None],
    views: Mapping[Views, Draws | None] | None = None,
    pool_cap: int | None = None,
    viewed: Container[str] | None = None,
) -> list[Manifest]:
    """Encode all parts of the jobs' common source, and augmented views of those that supports are drawn from.

    `views` are made of the pictures in these draws, or of all, by the backbones `viewed`, or by all; of a class of the
    pool at most `pool_cap` pictures are encoded.
    Each shard is fetched and decoded once for all encoders and views. `progress` is called with the number of pictures
    in each finished batch and each shard that was there already.
    """
    remove_torn(store.root)
    source = jobs[0].source
    manifests = []
    for part in dict.fromkeys(shard.part for shard in source.shards()):
        shards = [shard for shard in source.shards() if shard.part == part]
        chosen = choose(jobs, store, part, views or {}, pool_cap)
        targets = [Target(job, store, part, chosen.pool, pool_cap if part == "pool" else None) for job in jobs]
        for asked, drawn in chosen.views.items():
            numbers = range(asked.count)
            seeing = [job for job in jobs if viewed is None or job.backbone in viewed]
            targets += [Target(job, store, part, drawn, None, asked.recipe, n) for n in numbers for job in seeing]
        manifests += _encode_part(targets, shards, progress)
    return manifests


def _encode_part(targets: Sequence[Target], shards: Sequence[Shard], progress: Callable[[int], None]) -> list[Manifest]:
    found = {target: target.present() for target in targets}
    progress(sum(manifest.rows for manifest in found.values() if manifest))
    missing = [target for target, manifest in found.items() if manifest is None]
    try:
        for number, shard in enumerate(shards):
            files = {target: target.file(number, shard) for target in missing}
            lacking = {target: file for target, file in files.items() if not is_whole_shard(file)}
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
    """Decode every picture of the shard once and write a file for each target."""
    job = next(iter(files)).job
    groups: dict[str, list[Target]] = {}
    for target in files:
        groups.setdefault(target.name, []).append(target)
    rows = {target: ShardRows([], [], []) for target in files}
    tasks = _tasks(job.source.pictures(shard), list(groups.values()), job.batch)
    for task, inputs in _prepared(tasks, job.threads):
        for target, own in zip(task.targets, inputs, strict=True):
            ids, labels, features = rows[target]
            features.append(target.job.encoder.encode_images(own).astype(np.float16))
            ids += [decoded.picture.id for decoded in task.pictures]
            labels += [decoded.picture.label for decoded in task.pictures]
        progress(len(task.pictures) * len(task.targets))
    for target, file in files.items():
        ids, labels, features = rows[target]
        if not ids and target.wanted is None:
            raise FeatureError(f"shard {shard.key} of {job.source.origin} holds no pictures.")
        X = np.concatenate(features or [np.empty((0, target.job.encoder.dim), np.float16)])
        y = np.asarray(labels, np.int64)
        check_images(X, y, ids, job.source.classes)
        write_shard(file, X, y, ids)


def _tasks(pictures: Iterator[Picture], groups: Sequence[Sequence[Target]], size: int) -> Iterator[PictureBatch]:
    while batch := [Decoded(picture) for picture in islice(pictures, size)]:
        for targets in groups:
            chosen = [decoded for decoded in batch if targets[0].wants(decoded.picture)]
            if chosen:
                yield PictureBatch(targets, chosen)


def _prepared(tasks: Iterable[PictureBatch], threads: int) -> Iterator[tuple[PictureBatch, list[Any]]]:
    """Tasks in order, with the inputs of each encoder; while one is encoded, `threads` prepare the next.

    A picture that cannot be read is logged and left out, so a batch may be smaller, or none.
    """
    ahead: deque[tuple[PictureBatch, list[Future[list[Any]]]]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for task in tasks:
            ahead.append((task, [pool.submit(task.targets[0].inputs, p, task.targets) for p in task.pictures]))
            if len(ahead) == 2:
                yield from _finished(*ahead.popleft())
        while ahead:
            yield from _finished(*ahead.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _finished(task: PictureBatch, waiting: list[Future[list[Any]]]) -> Iterator[tuple[PictureBatch, list[Any]]]:
    pictures, rows = [], []
    for decoded, future in zip(task.pictures, waiting, strict=True):
        try:
            rows.append(future.result())
        except InputError as error:
            if not decoded.logged:
                logger.warning("left out: %s", error)
            decoded.logged = True
            continue
        pictures.append(decoded)
    if pictures:
        yield PictureBatch(task.targets, pictures), list(zip(*rows, strict=True))
