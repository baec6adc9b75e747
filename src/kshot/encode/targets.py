"""One dataset and one backbone: each part, and each augmented view of it, becomes a file.

Which pictures of a part are encoded, a capped pool or what some draw uses, follows from the ids and labels of the whole
part. These are read from stored features of any encoder, else from the source, without decoding a picture.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from kshot.data.episode import cap_pool, drawn_rows, self_split
from kshot.data.shards import join_shards
from kshot.data.store import Manifest, Store, read_manifest, view_part
from kshot.data.tensors import map_tensors, read_ids
from kshot.data.views import RECIPES
from kshot.encode.preprocess import draw_view
from kshot.encode.protocol import Encoder
from kshot.encode.sources.source import Listed, Picture, PictureShard, Source
from kshot.errors import FeatureError
from kshot.types import Views

if TYPE_CHECKING:
    from PIL.Image import Image

WORK = ".encoding"
# (shots, seed, profile) of draws.
Draws = AbstractSet[tuple[int, int, str]]


@dataclass(frozen=True)
class Encoding:
    """One dataset, encoded by one backbone."""

    dataset: str
    backbone: str
    source: Source
    encoder: Encoder
    licence: str = ""
    protocol: str = ""
    batch: int = 32
    threads: int = 2

    def about(self) -> dict[str, Any]:
        """What the manifests of all parts share."""
        return {
            "encoder": self.encoder.facts(),
            "logit_scale": self.encoder.logit_scale,
            "logit_bias": self.encoder.logit_bias,
            "source": self.source.origin,
            "licence": self.licence,
            "protocol": self.protocol,
        }


class Decoded:
    """A picture that is decoded once, for all encoders and views."""

    def __init__(self, picture: Picture):
        self.picture, self.logged = picture, False
        self._lock, self._image = Lock(), None

    def load(self) -> "Image":
        with self._lock:
            if self._image is None:
                self._image = self.picture.load()
            return self._image


@dataclass(frozen=True, eq=False)
class Target:
    """A part, or with a recipe one augmented view of it, by one encoder; joined from a file for each shard.

    `wanted` are the ids of its pictures, None for all; `pool_cap` is the most of each class, where there is a limit.
    """

    job: Encoding
    store: Store
    part: str
    wanted: frozenset[str] | None = None
    pool_cap: int | None = None
    recipe: str = ""
    number: int = 0

    def wants(self, picture: Picture) -> bool:
        return self.wanted is None or picture.id in self.wanted

    @property
    def name(self) -> str:
        """The part in the store."""
        return view_part(self.part, self.recipe, self.number) if self.recipe else self.part

    @property
    def encoder_facts(self) -> dict[str, Any]:
        """The encoder's facts, with the recipe of the view."""
        view = {"view_least_area": RECIPES[self.recipe]} if self.recipe else {}
        return self.job.encoder.facts() | view

    @property
    def work(self) -> Path:
        """The folder of the shards' files; another encoder, source or batch size has another one."""
        facts = [self.name, self.job.source.origin, self.job.source.classes, self.job.batch, self.encoder_facts]
        facts += [] if self.wanted is None else sorted(self.wanted)
        key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
        return self.store.root / WORK / self.job.dataset / self.job.backbone / key

    def file(self, number: int, shard: PictureShard) -> Path:
        name = hashlib.sha256(shard.key.encode()).hexdigest()[:16]
        return self.work / f"{number:05d}-{name}.safetensors"

    def inputs(self, decoded: Decoded, targets: Sequence["Target"]) -> list[Any]:
        """Prepare the picture, or this view of it, for each of the targets' encoders; equal preprocessings run once."""
        image, prepared = decoded.load(), {}
        view = self.recipe and draw_view(decoded.picture.id, self.number, image.size, RECIPES[self.recipe])
        for preprocessing in dict.fromkeys(target.job.encoder.preprocessing for target in targets):
            prepared[preprocessing] = preprocessing.view(image, *view) if view else preprocessing(image)
        return [prepared[target.job.encoder.preprocessing] for target in targets]

    def join(self, shards: Sequence[PictureShard]) -> Manifest:
        """Join the shards into the part and remove their files."""
        job, files = self.job, [self.file(number, shard) for number, shard in enumerate(shards)]
        about = job.about() | {"encoder": self.encoder_facts, "pool_cap": self.pool_cap}
        manifest = join_shards(self.store, (job.dataset, job.backbone, self.name), files, job.source.classes, **about)
        shutil.rmtree(self.work, ignore_errors=True)
        return manifest

    def present(self) -> Manifest | None:
        """Return the manifest if this encoder wrote the part from these pictures, None if there is no such part.

        Anything else under its name is refused.
        """
        path = self.store.path(self.job.dataset, self.job.backbone, self.name).with_suffix(".json")
        if not path.is_file():
            return None
        manifest = read_manifest(path)
        if differs := self._differences(manifest, path.with_suffix(".safetensors")):
            raise FeatureError(
                f"{path.parent} holds {self.name} of another encoding (differs in {', '.join(differs)}). "
                "Delete it or give another folder with --features."
            )
        # A kill may have come before the shards' files were removed.
        shutil.rmtree(self.work, ignore_errors=True)
        return manifest

    def _differences(self, manifest: Manifest, file: Path) -> list[str]:
        source, now, then = self.job.source, self.encoder_facts, manifest.encoder
        differs = [key for key in sorted(now.keys() | then.keys()) if then.get(key) != now.get(key)]
        if manifest.classes != source.classes:
            differs.append("classes")
        elif manifest.pool_cap is not None and self.pool_cap is None:
            differs.append(f"pool: at most {manifest.pool_cap} pictures of a class then, all now")
        elif self.wanted is not None:
            lacks = self.wanted.difference(read_ids(map_tensors(file)))
            if lacks:
                differs.append(f"pictures: {len(lacks)} that are wanted now are not there")
        elif isinstance(source, Listed):
            tensors, listed = map_tensors(file), source.listing(self.part)
            stored = list(zip(read_ids(tensors), tensors["labels"].tolist(), strict=True))
            # Pictures that could not be read were left out; try them again only where something is missing.
            if stored != listed and stored != source.readable(self.part, {name for name, _ in stored}):
                differs.append(f"pictures: {len(stored)} then, {len(listed)} now")
        return differs


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
