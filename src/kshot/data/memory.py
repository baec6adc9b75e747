"""A feature store in memory, before a folder of stored features."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kshot.data.store import Manifest, Rows, Store, Where, new_manifest
from kshot.data.tensors import tensors_sha256
from kshot.errors import FeatureError
from kshot.files import safe_name
from kshot.types import Array

Parts = dict[str, tuple[Manifest, dict[str, Array]]]


class MemoryStore(Store):
    """What is written stays in memory, with the hashes that its files would have; a (dataset, backbone) that is not in
    memory is read from the folder. Arrays are held as they are: nobody may change them afterwards."""

    def __init__(self, root: Path | str = "features"):
        super().__init__(root)
        self._strata: dict[tuple[str, str], Parts] = {}

    @property
    def held(self) -> list[str]:
        return [f"{dataset}/{backbone}" for dataset, backbone in self._strata]

    def take(self, store: Store, dataset: str, backbone: str) -> None:
        """Add a stratum of another store."""
        manifests = [m for m in store.readable() if (m.dataset, m.backbone) == (dataset, backbone)]
        parts = {m.part: store._open(dataset, backbone, m.part) for m in manifests}
        held = self._strata.setdefault((dataset, backbone), parts)
        if {part: m.sha256 for part, (m, _) in held.items()} != {m.part: m.sha256 for m in manifests}:
            raise FeatureError(
                f"two different features are called {dataset}/{backbone}. Give one another name or backbone."
            )

    def readable(self) -> Iterator[Manifest]:
        for parts in self._strata.values():
            yield from (manifest for manifest, _ in parts.values())
        yield from (m for m in super().readable() if (m.dataset, m.backbone) not in self._strata)

    def parts(self, dataset: str, backbone: str) -> list[str]:
        held = self._strata.get((dataset, backbone))
        return super().parts(dataset, backbone) if held is None else sorted(held)

    def _manifest(self, dataset: str, backbone: str, part: str) -> Manifest:
        held = self._strata.get((dataset, backbone))
        return super()._manifest(dataset, backbone, part) if held is None else held[part][0]

    def verify(self, manifest: Manifest) -> Path:
        held = (manifest.dataset, manifest.backbone) in self._strata
        return self.root if held else super().verify(manifest)

    def _open(self, dataset: str, backbone: str, part: str) -> tuple[Manifest, dict[str, Array]]:
        if (dataset, backbone) not in self._strata:
            return super()._open(dataset, backbone, part)
        return self.manifest(dataset, backbone, part), self._strata[dataset, backbone][part][1]

    def _keep(
        self, where: Where, tensors: dict[str, Array], rows: Rows, classes: Sequence[str], about: dict[str, Any]
    ) -> Manifest:
        for kind, name in zip(("dataset", "backbone", "part"), where, strict=True):
            safe_name(kind, name)
        digest = tensors_sha256({name: [array] for name, array in tensors.items()})
        manifest = new_manifest(where, digest, rows, classes, about)
        self._strata.setdefault(where[:2], {})[where[2]] = manifest, tensors
        return manifest
