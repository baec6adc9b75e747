"""Encode sources into the store, shard by shard, so that a killed run continues where it was."""

import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kshot.data.features import Features, load_features
from kshot.data.shards import is_whole_shard, write_shard
from kshot.data.store import BUNDLED, Manifest, Store, check_images
from kshot.data.tensors import map_tensors
from kshot.encode.chosen import Draws, choose
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.prompts import Prompts, encode_tiers, tier_prompts
from kshot.encode.protocol import Encoder
from kshot.encode.reference_vectors import compare_with_reference
from kshot.encode.sources import find_source
from kshot.encode.sources.in_memory import dataset_in_memory
from kshot.encode.sources.source import Picture, Shard
from kshot.encode.targets import Decoded, Encoding, Target
from kshot.errors import FeatureError, InputError
from kshot.files import remove_torn, safe_name
from kshot.progress import Progress
from kshot.types import Array, Views

REFERENCE = ".reference"
logger = logging.getLogger("kshot")

# Pictures, and what is prepared of each for the encoders of a group.
Inputs: TypeAlias = list[tuple[Decoded, Future[list[Any]]]]


def check_reference(job: Encoding, store: Store) -> None:
    """Compare the encoder with the vectors it gave before, here or when the bundled features were made."""
    name = f"{job.backbone}.safetensors"
    compare_with_reference(job.encoder, job.backbone, [root / REFERENCE / name for root in (store.root, BUNDLED)])


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
    if isinstance(data, str | Path):
        source = find_source(str(data))
    else:
        source = dataset_in_memory(data).source(f"{dataset} in memory")
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
    encode_pictures(jobs, store, views)
    for job in jobs:
        if job.encoder.text:
            encode_tiers(job, store, prompts)


def encode_pictures(
    jobs: Sequence[Encoding],
    store: Store,
    views: Mapping[Views, Draws | None] | None = None,
    pool_cap: int | None = None,
    viewed: Container[str] | None = None,
) -> list[Manifest]:
    """Encode all parts of the jobs' common source, and augmented views of the part that shots are drawn from.

    `views` are made of the pictures in these draws (None: of all), by the backbones `viewed` (None: by all). At most
    `pool_cap` pictures of each class of the pool are encoded. Each shard is fetched and decoded once for everything.
    """
    remove_torn(store.root)
    source = jobs[0].source
    viewing = [job for job in jobs if viewed is None or job.backbone in viewed]
    manifests = []
    with Progress(f"pictures of {jobs[0].dataset}") as progress:
        for part in dict.fromkeys(shard.part for shard in source.shards()):
            shards = [shard for shard in source.shards() if shard.part == part]
            pool, drawn = choose(jobs, store, part, views or {}, pool_cap)
            targets = [Target(job, store, part, pool, pool_cap if part == "pool" else None) for job in jobs]
            for asked, ids in drawn.items():
                numbers = range(asked.count)
                targets += [Target(job, store, part, ids, None, asked.recipe, n) for n in numbers for job in viewing]
            manifests += _encode_part(targets, shards, progress.advance)
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
    # No pictures: they may hold their bytes.
    rows: dict[str, list[tuple[str, int]]] = {name: [] for name in groups}
    features: dict[Target, list[Array]] = {target: [] for target in files}
    for targets, started in _started(job.source.pictures(shard), list(groups.values()), job.batch, job.threads):
        if not (read := list(_readable(started))):
            continue
        rows[targets[0].name] += [(picture.id, picture.label) for picture, _ in read]
        for target, inputs in zip(targets, zip(*(own for _, own in read), strict=True), strict=True):
            features[target].append(target.job.encoder.encode_images(inputs).astype(np.float16))
        progress(len(read) * len(targets))
    for target, file in files.items():
        ids, labels = [name for name, _ in rows[target.name]], [label for _, label in rows[target.name]]
        if not ids and target.wanted is None:
            raise FeatureError(f"shard {shard.key} of {job.source.origin} holds no pictures.")
        X = np.concatenate(features[target] or [np.empty((0, target.job.encoder.dim), np.float16)])
        y = np.array(labels, np.int64)
        check_images(X, y, ids, job.source.classes)
        write_shard(file, X, y, ids)


def _started(
    pictures: Iterator[Picture], groups: Sequence[Sequence[Target]], size: int, threads: int
) -> Iterator[tuple[Sequence[Target], Inputs]]:
    """Batches of the pictures that each group of targets wants, whose inputs `threads` prepare.

    The next batch is started before one is handed out. The targets of a group differ in their encoders only.
    """
    waiting = None
    with ThreadPoolExecutor(threads) as pool:
        while batch := [Decoded(picture) for picture in islice(pictures, size)]:
            for targets in groups:
                wanted = [decoded for decoded in batch if targets[0].wants(decoded.picture)]
                if not wanted:
                    continue
                started = [(decoded, pool.submit(targets[0].inputs, decoded, targets)) for decoded in wanted]
                if waiting:
                    yield waiting
                waiting = targets, started
        if waiting:
            yield waiting


def _readable(started: Inputs) -> Iterator[tuple[Picture, list[Any]]]:
    """Pictures with the input of each encoder; one that cannot be read is logged once and left out."""
    for decoded, future in started:
        try:
            yield decoded.picture, future.result()
        except InputError as error:
            if not decoded.logged:
                logger.warning("left out: %s", error)
            decoded.logged = True
