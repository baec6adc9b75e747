"""Sources through encoders into the store, shard by shard, so that a killed run continues where it was."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from kshot.data.format import Manifest, is_whole_shard, map_tensors, write_shard
from kshot.data.store import BUNDLED, Store, check_images
from kshot.encode.batches import picture_batches
from kshot.encode.reference_vectors import hold_to_reference
from kshot.encode.sources.source import Shard
from kshot.encode.targets import Encoding, Look, Target
from kshot.errors import FeatureError
from kshot.files import remove_torn
from kshot.types import Array, Views

REFERENCE = ".reference"


def check_reference(job: Encoding, store: Store) -> None:
    """Hold the encoder to the vectors it gave before, here or when the bundled features were made."""
    name = f"{job.backbone}.safetensors"
    hold_to_reference(job.encoder, job.backbone, [root / REFERENCE / name for root in (store.root, BUNDLED)])


def encode_pictures(
    jobs: Sequence[Encoding], store: Store, progress: Callable[[int], None], views: Views | None = None
) -> list[Manifest]:
    """All parts of the jobs' common source, with augmented views of those that supports are drawn from.

    Each shard is read for all encoders and views before the next one, so that it is fetched once. `progress` hears how
    many pictures each finished batch or found shard held.
    """
    remove_torn(store.root)
    source = jobs[0].source
    manifests = []
    for part in dict.fromkeys(shard.part for shard in source.shards()):
        drawn = views.count if views and part in ("pool", "all") else 0
        looks = [Look(part), *(Look(part, views.recipe, number) for number in range(drawn) if views)]
        shards = [shard for shard in source.shards() if shard.part == part]
        targets = [Target(job, look, store) for look in looks for job in jobs]
        manifests += _encode_part(targets, shards, progress)
    return manifests


def _encode_part(targets: Sequence[Target], shards: Sequence[Shard], progress: Callable[[int], None]) -> list[Manifest]:
    found = {target: target.present() for target in targets}
    progress(sum(manifest.rows for manifest in found.values() if manifest))
    missing = [target for target, manifest in found.items() if manifest is None]
    looks = dict.fromkeys(target.look for target in missing)
    try:
        for number, shard in enumerate(shards):
            for look in looks:
                files = {t: t.file(number, shard) for t in missing if t.look == look}
                lacking = {t: file for t, file in files.items() if not is_whole_shard(file)}
                progress(sum(_rows(file) for t, file in files.items() if t not in lacking))
                _encode_shard(lacking, look, shard, progress)
        found |= {target: target.join(shards) for target in missing}
    except FeatureError:
        # Another process may have joined the same shards and removed them.
        found |= {target: target.present() for target in missing}
        if None in found.values():
            raise
    return [manifest for manifest in found.values() if manifest]


def _encode_shard(files: Mapping[Target, Path], look: Look, shard: Shard, progress: Callable[[int], None]) -> None:
    """Decode the shard once and write a file for each of these targets."""
    if not files:
        return
    jobs = [target.job for target in files]
    first = jobs[0]
    preprocessings = [job.encoder.preprocessing for job in jobs]
    ids: list[str] = []
    labels: list[int] = []
    rows: list[list[Array]] = [[] for _ in jobs]
    pictures = first.source.pictures(shard)
    for batch in picture_batches(
        pictures, lambda picture: look.prepared(picture, preprocessings), first.batch, first.threads
    ):
        for own, job, inputs in zip(rows, jobs, batch.inputs, strict=True):
            own.append(job.encoder.encode_images(inputs).astype(np.float16))
        ids += batch.ids
        labels += batch.labels
        progress(len(batch.ids) * len(jobs))
    if not ids:
        raise FeatureError(f"shard {shard.key} of {first.source.origin} holds no pictures.")
    y = np.asarray(labels)
    for own, file in zip(rows, files.values(), strict=True):
        X = np.concatenate(own)
        check_images(X, y, ids, first.source.classes)
        write_shard(file, X, y, ids)


def _rows(file: Path) -> int:
    return len(map_tensors(file)["labels"])
