"""Encode sources into the store, block by block, so that a killed run continues where it was."""

import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kshot.data.features import Features, load_features
from kshot.data.store import BUNDLED, Manifest, Store
from kshot.data.tensors import map_tensors
from kshot.encode.blocks import ALONE, Block, Crew, lacking
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.prompts import Prompts, encode_tiers, tier_prompts
from kshot.encode.protocol import Encoder, several_devices
from kshot.encode.reference_vectors import compare_with_reference
from kshot.encode.sources import find_source
from kshot.encode.sources.in_memory import dataset_in_memory
from kshot.encode.sources.source import PictureShard
from kshot.encode.targets import Draws, Encoding, Target, choose
from kshot.errors import FeatureError
from kshot.files import remove_torn, safe_name
from kshot.progress import Progress
from kshot.types import Views
from kshot.workers import Workers

REFERENCE = ".reference"
logger = logging.getLogger("kshot")


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
    workers: int = 1,
    backend: str = "loky",
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
    device : text
        auto, cpu, cuda, cuda:N or mps; several, as in "cuda:0,cuda:1", are taken by the workers in turn.
    workers, backend : number and "loky" or "dask:ADDRESS"
        Processes that encode blocks of pictures side by side; the bytes do not depend on them.
    """
    safe_name("dataset", dataset)
    if isinstance(data, str | Path):
        source = find_source(str(data))
    else:
        source = dataset_in_memory(data).source(f"{dataset} in memory")
    devices = several_devices(device, workers)
    loaded = load_encoder(encoder, device=devices[0]) if isinstance(encoder, str) else encoder
    prompts = tier_prompts(dataset, source, None, tiers if loaded.text else (), {})
    backbone = safe_name("backbone", stored_name(loaded.backbone))
    job = Encoding(dataset, backbone, source, loaded, batch=batch, threads=threads)
    crew = Crew(Workers(workers, backend), devices=devices)
    encode_jobs([job], Store(Path(features)), {} if views is None else {views: None}, prompts, crew)
    return load_features(dataset, backbone, features=features)


def encode_jobs(
    jobs: Sequence[Encoding], store: Store, views: Mapping[Views, Draws | None], prompts: Prompts, crew: Crew = ALONE
) -> None:
    """Encode the pictures of one dataset with several encoders in one pass, then its prompts."""
    for job in jobs:
        check_reference(job, store)
    encode_pictures(jobs, store, views, crew=crew)
    for job in jobs:
        if job.encoder.text and crew.share.index == 0:
            encode_tiers(job, store, prompts)


def encode_pictures(
    jobs: Sequence[Encoding],
    store: Store,
    views: Mapping[Views, Draws | None] | None = None,
    pool_cap: int | None = None,
    viewed: Container[str] | None = None,
    crew: Crew = ALONE,
) -> list[Manifest]:
    """Encode all parts of the jobs' common source, and augmented views of the part that shots are drawn from.

    `views` are made of the pictures in these draws (None: of all), by the backbones `viewed` (None: by all). At most
    `pool_cap` pictures of each class of the pool are encoded. Each shard is fetched and decoded once for everything. A
    share of the crew leaves blocks to the others; whoever comes last joins them.
    """
    remove_torn(store.root)
    manifests = []
    with Progress(f"pictures of {jobs[0].dataset}") as progress:
        for shards, targets in targets_of(jobs, store, views or {}, pool_cap, viewed):
            manifests += _encode_part(targets, shards, progress, crew)
    return manifests


def targets_of(
    jobs: Sequence[Encoding],
    store: Store,
    views: Mapping[Views, Draws | None],
    pool_cap: int | None = None,
    viewed: Container[str] | None = None,
) -> Iterator[tuple[list[PictureShard], list[Target]]]:
    """For each part of the source its shards, and what is made of them."""
    source = jobs[0].source
    viewing = [job for job in jobs if viewed is None or job.backbone in viewed]
    for part in dict.fromkeys(shard.part for shard in source.shards()):
        shards = [shard for shard in source.shards() if shard.part == part]
        pool, drawn = choose(jobs, store, part, views, pool_cap)
        targets = [Target(job, store, part, pool, pool_cap if part == "pool" else None) for job in jobs]
        for asked, ids in drawn.items():
            numbers = range(asked.count)
            targets += [Target(job, store, part, ids, None, asked.recipe, n) for n in numbers for job in viewing]
        yield shards, targets


def _encode_part(
    targets: Sequence[Target], shards: Sequence[PictureShard], progress: Progress, crew: Crew
) -> list[Manifest]:
    found = {target: target.present() for target in targets}
    progress.advance(sum(manifest.rows for manifest in found.values() if manifest))
    missing = [target for target, manifest in found.items() if manifest is None]
    blocks = [Block(shard, {t: t.file(number, shard) for t in missing}) for number, shard in enumerate(shards)]
    try:
        if missing:
            mine = blocks[crew.share.index :: crew.share.count]
            left = lacking(mine)
            there = [file for block in mine for file in block.files.values()]
            there = set(there) - {file for block in left for file in block.files.values()}
            progress.advance(sum(len(map_tensors(file)["labels"]) for file in there))
            crew.encode(left, progress)
            if crew.share.count > 1 and (others := len(lacking(blocks))):
                logger.info(f"{others} of {len(blocks)} blocks of {shards[0].part} are left to other shards.")
                missing = []
        found |= {target: target.join(shards) for target in missing}
    except FeatureError:
        # Another process may have joined the same shards and removed them.
        found |= {target: target.present() for target in missing}
        if any(found[target] is None for target in missing):
            raise
    return [manifest for manifest in found.values() if manifest]
