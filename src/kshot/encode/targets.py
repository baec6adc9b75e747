"""What is to be encoded: a dataset by a backbone; each part, and each augmented view of it, becomes a file."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kshot.data.format import Manifest, map_tensors, read_ids, read_manifest
from kshot.data.store import Store, view_part
from kshot.encode.augment import RECIPES, draw_view
from kshot.encode.protocol import Encoder
from kshot.encode.sources.source import Listed, Picture, Shard, Source
from kshot.errors import FeatureError

WORK = ".encoding"


@dataclass(frozen=True)
class Encoding:
    """One dataset, encoded by one backbone."""

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


@dataclass(frozen=True, eq=False)
class Target:
    """A part, or with a recipe one augmented view of it, by one encoder; joined from a file for each shard."""

    job: Encoding
    store: Store
    part: str
    recipe: str = ""
    number: int = 0

    @property
    def name(self) -> str:
        """The part in the store."""
        return view_part(self.part, self.recipe, self.number) if self.recipe else self.part

    @property
    def encoder(self) -> dict[str, Any]:
        """The encoder's facts, with the recipe of the view."""
        view = {"view_least_area": RECIPES[self.recipe]} if self.recipe else {}
        return self.job.encoder.facts() | view

    @property
    def work(self) -> Path:
        """The folder of the shards' files; another encoder, source or batch size has another one."""
        facts = [self.name, self.job.source.origin, self.job.source.classes, self.job.batch, self.encoder]
        key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
        return self.store.root / WORK / self.job.dataset / self.job.backbone / key

    def file(self, number: int, shard: Shard) -> Path:
        name = hashlib.sha256(shard.key.encode()).hexdigest()[:16]
        return self.work / f"{number:05d}-{name}.safetensors"

    def inputs(self, picture: Picture, preprocessings: Sequence[Any]) -> list[Any]:
        """Decode the picture once and prepare it for each encoder."""
        image = picture.load()
        if not self.recipe:
            return [preprocessing(image) for preprocessing in preprocessings]
        view = draw_view(picture.id, self.number, image.size, RECIPES[self.recipe])
        return [preprocessing.view(image, *view) for preprocessing in preprocessings]

    def join(self, shards: Sequence[Shard]) -> Manifest:
        """Join the shards into the part and remove their files."""
        job, files = self.job, [self.file(number, shard) for number, shard in enumerate(shards)]
        about = job.about() | {"encoder": self.encoder}
        manifest = self.store.join_images(job.dataset, job.backbone, self.name, files, job.source.classes, **about)
        shutil.rmtree(self.work, ignore_errors=True)
        return manifest

    def present(self) -> Manifest | None:
        """Return the manifest if this encoder wrote the part from these pictures, None if there is no such part.

        Anything else under its name is refused.
        """
        job, encoder = self.job, self.encoder
        path = self.store.path(job.dataset, job.backbone, self.name).with_suffix(".json")
        if not path.is_file():
            return None
        manifest = read_manifest(path)
        known = sorted(encoder.keys() | manifest.encoder.keys())
        differs = [key for key in known if manifest.encoder.get(key) != encoder.get(key)]
        if manifest.classes != job.source.classes:
            differs.append("classes")
        elif isinstance(job.source, Listed):
            tensors = map_tensors(path.with_suffix(".safetensors"))
            then = list(zip(read_ids(tensors), tensors["labels"].tolist(), strict=True))
            now = job.source.listing(self.part)
            # Pictures that could not be read were left out; try them again only where something is missing.
            if then != now and then != job.source.readable(self.part, {name for name, _ in then}):
                differs.append(f"pictures: {len(then)} then, {len(now)} now")
        if not differs:
            return manifest
        raise FeatureError(
            f"{path.parent} holds {self.name} of another encoding (differs in {', '.join(differs)}). "
            "Delete it or give another folder with --features."
        )
