"""The feature store: ROOT/dataset/backbone/part.safetensors with a manifest written last.

Parts of a stratum: `pool` and `test` (and `val`) where the dataset has official splits, `all` where it has none,
`pool-tip-view03` for an augmented view of a recipe, `text-TIER` for prototypes. Features, labels and ids all live in
the hashed file; the manifest stays small, so listing a large store stays fast. A stratum that the folder lacks is
read from the features that come with the package.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from kshot.data.tensors import image_tensors, map_tensors, read_ids, write_tensors
from kshot.errors import FeatureError, InputError, unknown
from kshot.files import json_seal, safe_name, sha256, write_hashed, write_text
from kshot.solvers.rows import row_blocks
from kshot.types import Array

FORMAT = 1
IMAGE_PARTS = ("pool", "test", "all")
BUNDLED = Path(__file__).parent / "bundled"
# Hidden ones are still being written.
MANIFESTS = "[!.]*.json"
# Dataset, backbone and part.
Where: TypeAlias = tuple[str, str, str]
Rows: TypeAlias = Float[Array, "N d"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Facts about one feature file; written after it, so a manifest means that the file is whole."""

    dataset: str
    backbone: str
    part: str
    sha256: str
    rows: int
    dim: int
    dtype: str
    classes: tuple[str, ...]
    encoder: dict[str, Any] = field(default_factory=dict)
    logit_scale: float | None = None
    logit_bias: float | None = None
    simulated: bool = False
    source: str = ""
    licence: str = ""
    protocol: str = ""
    # At most so many pool pictures of a class were encoded.
    pool_cap: int | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT
    # A hash of everything else that stands in the file, as it stands there.
    seal: str = field(default="", compare=False)

    @property
    def tier(self) -> str:
        """The prompt tier of a part of text; empty for pictures."""
        return self.part.removeprefix("text-") if self.part.startswith("text-") else ""

    def meaning(self) -> str:
        """A hash of the fields that results depend on: not source, licence, provenance or versions."""
        about = {"source", "licence", "provenance", "versions", "seal"}
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in about}
        return json_seal({name: value for name, value in told.items() if value not in (None, "", {}, False)})

    def to_json(self) -> str:
        content = asdict(self)
        content["seal"] = json_seal(content)
        return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True)
class ImageFeatures:
    """Encoded pictures: rows of features, labels 0..C−1 and ids that never change."""

    X: Float[Array, "N d"]
    y: Int[Array, " N"]
    ids: tuple[str, ...]
    manifest: Manifest


@dataclass(frozen=True)
class TextFeatures:
    """Unit prototypes and the norms they had before normalisation, where those were kept."""

    prototypes: Float[Array, "C d"]
    norms: Float[Array, " C"] | None
    manifest: Manifest


class Store:
    """A folder of features; reading falls back on the bundled ones, stratum by stratum."""

    def __init__(self, root: Path | str):
        self.root = Path(root)

    def manifests(self) -> Iterator[Manifest]:
        """The manifests of this folder, sorted by path."""
        for path in sorted(self.root.glob(f"*/*/{MANIFESTS}")):
            yield read_manifest(path)

    def bundled(self) -> Iterator[Manifest]:
        """The manifests of the package's features that this folder does not replace."""
        for path in sorted(BUNDLED.glob(f"*/*/{MANIFESTS}")):
            if self._home(path.parts[-3], path.parts[-2]) == BUNDLED:
                yield read_manifest(path)

    def readable(self) -> Iterator[Manifest]:
        """This folder's parts and the bundled ones that it does not replace."""
        yield from self.manifests()
        yield from self.bundled()

    def hashes(self, strata: Iterable[tuple[str, str]]) -> dict[str, str]:
        """sha256 of every stored part of these (dataset, backbone), and a hash of what its manifest says."""
        wanted = set(strata)
        hashes = {}
        for manifest in self.readable():
            if (manifest.dataset, manifest.backbone) in wanted:
                name = f"{manifest.dataset}/{manifest.backbone}/{manifest.part}"
                hashes |= {name: manifest.sha256, f"{name}.json": manifest.meaning()}
        return hashes

    def path(self, dataset: str, backbone: str, part: str) -> Path:
        """Where a part is written."""
        return _path(self.root, dataset, backbone, part)

    def manifest(self, dataset: str, backbone: str, part: str) -> Manifest:
        """A part's manifest; its features are not read."""
        if not self.has(dataset, backbone, part):
            known = {f"{m.dataset}/{m.backbone}/{m.part}" for m in self.readable()}
            where = f"They are not stored completely under {self.root}; see `kshot ls features`."
            raise FeatureError(unknown("features", f"{dataset}/{backbone}/{part}", known, where))
        return self._manifest(dataset, backbone, part)

    def has(self, dataset: str, backbone: str, part: str) -> bool:
        return part in self.parts(dataset, backbone)

    def parts(self, dataset: str, backbone: str) -> list[str]:
        """Names of the stored parts of a stratum."""
        folder = _path(self._home(dataset, backbone), dataset, backbone, "any").parent
        return sorted(path.stem for path in folder.glob(MANIFESTS))

    def part_of(self, dataset: str, backbone: str, split: str) -> str:
        """The part that holds a split: `all` where the dataset has no official splits."""
        return "all" if self.has(dataset, backbone, "all") else split

    def tiers(self, dataset: str, backbone: str) -> list[str]:
        """Prompt tiers stored for a stratum; none for a backbone without text."""
        return [part.removeprefix("text-") for part in self.parts(dataset, backbone) if part.startswith("text-")]

    def write_images(
        self,
        dataset: str,
        backbone: str,
        part: str,
        X: Float[Array, "N d"],
        y: Int[Array, " N"],
        ids: Sequence[str],
        classes: Sequence[str],
        **about: Any,
    ) -> Manifest:
        """Store encoded pictures; `about` fills the manifest's other fields."""
        check_images(X, y, ids, classes)
        return self._keep((dataset, backbone, part), image_tensors(X, y, ids), X, classes, about)

    def write_text(
        self,
        dataset: str,
        backbone: str,
        tier: str,
        prototypes: Float[Array, "C d"],
        norms: Float[Array, " C"] | None,
        classes: Sequence[str],
        **about: Any,
    ) -> Manifest:
        """Store one prompt tier's unit prototypes and the norms they had."""
        if len(prototypes) != len(classes) or (norms is not None and len(norms) != len(classes)):
            raise InputError(f"{len(prototypes)} prototypes for {len(classes)} classes; give one of each.")
        if not np.isfinite(prototypes).all():
            raise InputError("text prototypes hold NaN or infinite values; no file was written.")
        tensors = {"prototypes": np.ascontiguousarray(prototypes)}
        if norms is not None:
            tensors["norms"] = norms.astype(np.float32)
        return self._keep((dataset, backbone, f"text-{tier}"), tensors, prototypes, classes, about)

    def write_part(
        self, where: Where, write: Callable[[Path], object], rows: Rows, classes: Sequence[str], about: dict[str, Any]
    ) -> Manifest:
        """Call `write` with a temporary path for the part's file, then write the manifest; `rows` has its shape."""
        path = self.path(*where)
        beside = path.with_suffix(".json")
        digest = write_hashed(path, write, lambda new: _forget_other_bytes(beside, new))
        write_text(beside, new_manifest(where, digest, rows, classes, about).to_json())
        return read_manifest(beside)

    def images(self, dataset: str, backbone: str, part: str) -> ImageFeatures:
        """Memory-mapped pictures, verified by hash."""
        manifest, tensors = self._open(dataset, backbone, part)
        return ImageFeatures(tensors["features"], tensors["labels"], read_ids(tensors), manifest)

    def ids(self, dataset: str, backbone: str, part: str) -> tuple[str, ...]:
        """The pictures of a part; its hash is not checked."""
        return read_ids(map_tensors(self._found(dataset, backbone, part)))

    def text(self, dataset: str, backbone: str, tier: str) -> TextFeatures:
        """One tier's prototypes, verified by hash."""
        manifest, tensors = self._open(dataset, backbone, f"text-{tier}")
        return TextFeatures(tensors["prototypes"], tensors.get("norms"), manifest)

    def verify(self, manifest: Manifest) -> Path:
        """Raise unless the file is exactly the one its manifest was written for."""
        path = self._found(manifest.dataset, manifest.backbone, manifest.part)
        if not path.is_file():
            raise FeatureError(f"{path} is missing although its manifest exists. Encode it again.")
        digest = sha256(path)
        if digest != manifest.sha256:
            raise FeatureError(
                f"{path} is damaged: its manifest says sha256 {manifest.sha256}, the file has {digest}. "
                f"Delete {path.with_suffix('.json')} and write the features again."
            )
        return path

    def _home(self, dataset: str, backbone: str) -> Path:
        """The folder that a stratum is read from: this one if it has any part of it, else the bundled one."""
        own = _path(self.root, dataset, backbone, "any").parent
        bundled = _path(BUNDLED, dataset, backbone, "any").parent
        return BUNDLED if bundled.is_dir() and not any(own.glob(MANIFESTS)) else self.root

    def _found(self, dataset: str, backbone: str, part: str) -> Path:
        return _path(self._home(dataset, backbone), dataset, backbone, part)

    def _manifest(self, dataset: str, backbone: str, part: str) -> Manifest:
        return read_manifest(self._found(dataset, backbone, part).with_suffix(".json"))

    def _open(self, dataset: str, backbone: str, part: str) -> tuple[Manifest, dict[str, Array]]:
        manifest = self.manifest(dataset, backbone, part)
        return manifest, map_tensors(self.verify(manifest))

    def _keep(
        self, where: Where, tensors: dict[str, Array], rows: Rows, classes: Sequence[str], about: dict[str, Any]
    ) -> Manifest:
        pieces = {name: [array] for name, array in tensors.items()}
        return self.write_part(where, lambda path: write_tensors(path, pieces), rows, classes, about)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; raise if one letter of it was changed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise FeatureError(
                f"{path} has feature format {content['format']}; this kshot reads format {FORMAT}. "
                "Encode the features again or install the version that wrote them."
            )
        seal = content.pop("seal", None)
        if seal != json_seal(content):
            raise FeatureError(
                f"{path} is damaged: it was changed after it was written. Encode the features again, or restore it."
            )
        said = tuple(content[name] for name in ("dataset", "backbone", "part"))
        if said != (path.parts[-3], path.parts[-2], path.stem):
            raise FeatureError(
                f"{path} is damaged: it is the manifest of {'/'.join(map(str, said))}. Restore it, or encode again."
            )
        known = {f.name for f in fields(Manifest)}
        content = {name: value for name, value in content.items() if name in known}
        return Manifest(**{**content, "classes": tuple(content["classes"]), "seal": seal})
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FeatureError(f"{path} is not a readable manifest ({error}). Encode the features again.") from error


def as_store(features: Path | str | Store) -> Store:
    """A store as it is, or the store of a folder."""
    return features if isinstance(features, Store) else Store(features)


def view_part(part: str, recipe: str, number: int) -> str:
    """The name of one augmented view of a part."""
    return f"{part}-{recipe}-view{number:02d}"


def _forget_other_bytes(manifest: Path, digest: str) -> None:
    """Delete the manifest of other bytes before they are replaced. A manifest of the same bytes stays, so that readers
    find features that two processes write at once."""
    if manifest.is_file() and digest not in manifest.read_text(encoding="utf-8"):
        manifest.unlink(missing_ok=True)


def _path(root: Path, dataset: str, backbone: str, part: str) -> Path:
    folder = root / safe_name("dataset", dataset) / safe_name("backbone", backbone)
    return folder / f"{safe_name('part', part)}.safetensors"


def new_manifest(where: Where, digest: str, rows: Rows, classes: Sequence[str], about: dict[str, Any]) -> Manifest:
    return Manifest(
        *where,
        sha256=digest,
        rows=rows.shape[0],
        dim=rows.shape[1],
        dtype=str(rows.dtype),
        classes=tuple(classes),
        versions={name: version(name) for name in ("kshot", "numpy", "safetensors")},
        **about,
    )


def check_images(X: Float[Array, "N d"], y: Int[Array, " N"], ids: Sequence[str], classes: Sequence[str]) -> None:
    if not len(X) == len(y) == len(ids):
        raise InputError(f"{len(X)} feature rows, {len(y)} labels and {len(ids)} ids; they must be equal.")
    if not all(np.isfinite(X[rows]).all() for rows in row_blocks(len(X))):
        raise InputError("features hold NaN or infinite values; no file was written.")
    if np.asarray(y).dtype.kind not in "iu":
        raise InputError(
            f"labels are numbers 0..{len(classes) - 1} that count the classes, not {next(iter(y), 'words')!s:.40}. "
            "Give y = np.array([classes.index(name) for name in names])."
        )
    if len(y) and (y.min() < 0 or y.max() >= len(classes)):
        raise InputError(f"labels span {y.min()}..{y.max()}; allowed is 0..{len(classes) - 1}.")
    check_ids(ids)


def check_ids(ids: Sequence[str]) -> None:
    if len(set(ids)) != len(ids):
        raise InputError("ids repeat; every picture needs an id of its own.")
    if any("\n" in name for name in ids):
        raise InputError("an id contains a line break.")
