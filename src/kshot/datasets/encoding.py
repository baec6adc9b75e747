"""Sources through an encoder into the store, shard by shard, so that a killed run continues where it was."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kshot.encode.augment import RECIPES, draw_view
from kshot.encode.batches import picture_batches
from kshot.encode.protocol import Encoder
from kshot.encode.reference_vectors import hold_to_reference
from kshot.encode.sources.source import Listed, Picture, Shard, Source
from kshot.errors import FeatureError
from kshot.features.format import Manifest, is_whole_shard, map_tensors, read_ids, read_manifest, write_shard
from kshot.features.store import BUNDLED, Store, check_images, view_part
from kshot.files import remove_torn
from kshot.types import Array, Views

WORK = ".encoding"
REFERENCE = ".reference"


@dataclass(frozen=True)
class Encoding:
    """One dataset by one backbone."""

    dataset: str
    backbone: str
    source: Source
    encoder: Encoder
    licence: str = ""
    about_source: str = ""
    protocol: str = ""
    batch: int = 32
    threads: int = 2

    def about(self) -> dict[str, Any]:
        """What the manifests of all parts share."""
        return {
            "encoder": self.encoder.facts(),
            "logit_scale": self.encoder.logit_scale,
            "logit_bias": self.encoder.logit_bias,
            "source": self.about_source or self.source.origin,
            "licence": self.licence,
            "protocol": self.protocol,
        }


def check_reference(job: Encoding, store: Store) -> None:
    """Hold the encoder to the vectors it gave before, here or when the bundled features were made."""
    name = f"{job.backbone}.safetensors"
    hold_to_reference(job.encoder, job.backbone, [root / REFERENCE / name for root in (store.root, BUNDLED)])


def encode_pictures(job: Encoding, store: Store, progress: Callable[[int], None]) -> list[Manifest]:
    """All parts of the source; `progress` hears how many pictures each finished batch or found shard held."""

    def prepare(picture: Picture) -> Array:
        return job.encoder.preprocessing(picture.load())

    remove_torn(store.root)
    return [_encode_part(job, store, part, part, prepare, progress) for part in _parts(job.source)]


def encode_views(
    job: Encoding, store: Store, views: Views, progress: Callable[[int], None]
) -> list[Manifest]:
    """Augmented views of the pictures that supports are drawn from, each view a part of its own."""
    manifests = []
    least_area = RECIPES[views.recipe]
    for part in _parts(job.source):
        if part not in ("pool", "all"):
            continue
        for number in range(views.count):

            def prepare(picture: Picture, number: int = number) -> Array:
                image = picture.load()
                return job.encoder.preprocessing.view(
                    image, *draw_view(picture.id, number, image.size, least_area)
                )

            view = view_part(part, views.recipe, number)
            manifests.append(
                _encode_part(job, store, part, view, prepare, progress, {"view_least_area": least_area})
            )
    return manifests


def _parts(source: Source) -> list[str]:
    return list(dict.fromkeys(shard.part for shard in source.shards()))


def _encode_part(
    job: Encoding,
    store: Store,
    part: str,
    target: str,
    prepare: Callable[[Picture], Array],
    progress: Callable[[int], None],
    also: dict[str, Any] | None = None,
) -> Manifest:
    about = job.about()
    about["encoder"] |= also or {}
    if (present := _already(store, job, part, target, about["encoder"])) is not None:
        progress(present.rows)
        return present
    work = store.root / WORK / job.dataset / job.backbone / _work_key(job, target, about["encoder"])
    try:
        files = _encode_shards(job, part, prepare, work, progress)
        manifest = store.join_images(job.dataset, job.backbone, target, files, job.source.classes, **about)
    except FeatureError:
        # Another process may have joined the same shards and removed them.
        if (present := _already(store, job, part, target, about["encoder"])) is None:
            raise
        return present
    shutil.rmtree(work, ignore_errors=True)
    return manifest


def _encode_shards(
    job: Encoding, part: str, prepare: Callable[[Picture], Array], work: Path, progress: Callable[[int], None]
) -> list[Path]:
    """A file for each shard of the part; whole ones that are there already are kept."""
    files = []
    for number, shard in enumerate(s for s in job.source.shards() if s.part == part):
        name = hashlib.sha256(shard.key.encode()).hexdigest()[:16]
        file = work / f"{number:05d}-{name}.safetensors"
        if is_whole_shard(file):
            progress(_rows(file))
        else:
            _encode_shard(job, shard, prepare, file, progress)
        files.append(file)
    return files


def _encode_shard(
    job: Encoding,
    shard: Shard,
    prepare: Callable[[Picture], Array],
    file: Path,
    progress: Callable[[int], None],
) -> None:
    ids: list[str] = []
    labels: list[int] = []
    rows: list[Array] = []
    for batch in picture_batches(job.source.pictures(shard), prepare, job.batch, job.threads):
        rows.append(job.encoder.encode_images(batch.inputs).astype(np.float16))
        ids += batch.ids
        labels += batch.labels
        progress(len(batch.ids))
    if not rows:
        raise FeatureError(f"shard {shard.key} of {job.source.origin} holds no pictures.")
    X, y = np.concatenate(rows), np.asarray(labels)
    check_images(X, y, ids, job.source.classes)
    write_shard(file, X, y, ids)


def _already(store: Store, job: Encoding, part: str, target: str, encoder: dict[str, Any]) -> Manifest | None:
    """The target if this very encoder has written it from the pictures that the part has now; anything else under its
    name is refused."""
    path = store.path(job.dataset, job.backbone, target).with_suffix(".json")
    if not path.is_file():
        return None
    manifest = read_manifest(path)
    known = sorted(encoder.keys() | manifest.encoder.keys())
    differs = [key for key in known if manifest.encoder.get(key) != encoder.get(key)]
    if manifest.classes != job.source.classes:
        differs.append("classes")
    elif isinstance(job.source, Listed) and _listing(store, manifest) != job.source.listing(part):
        differs.append(f"pictures: {manifest.rows} then, {len(job.source.listing(part))} now")
    if not differs:
        return manifest
    raise FeatureError(
        f"{path.parent} holds {target} of another encoding (differs in {', '.join(differs)}). "
        "Delete it or give another folder with --features."
    )


def _work_key(job: Encoding, part: str, encoder: dict[str, Any]) -> str:
    """Shards of different weights, sources or batch sizes never meet in one file."""
    facts = [part, job.source.origin, job.source.classes, job.batch, encoder]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _rows(file: Path) -> int:
    return len(map_tensors(file)["labels"])


def _listing(store: Store, manifest: Manifest) -> list[tuple[str, int]]:
    tensors = map_tensors(store.path(manifest.dataset, manifest.backbone, manifest.part))
    return list(zip(read_ids(tensors), tensors["labels"].tolist(), strict=True))
