"""Picture files to unit features, cached under the hashes of the file's content and of the encoder."""

import hashlib
import io
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from kshot.encode.pictures import decode
from kshot.encode.prompts import encode_tier, from_templates
from kshot.encode.protocol import Encoder
from kshot.errors import InputError, KshotError
from kshot.files import read_about, seal_tensors, unseal_tensors, write_bytes
from kshot.progress import Progress
from kshot.types import Array

logger = logging.getLogger("kshot")

BATCH = 32
THUMBNAIL_PIXELS = 96
# Phones take pictures of 108 and 200 megapixels.
MOST_PIXELS = 210_000_000
# Cache folders whose warning was shown.
_unwritable: set[Path] = set()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture's sha256, its feature (d,) and a small JPEG of it."""

    sha256: str
    feature: Array
    thumbnail: bytes


class ClassText(NamedTuple):
    """The text prototype (d,) of a class and its norm before normalisation."""

    unit: Array
    norm: float


@runtime_checkable
class PictureFile(Protocol):
    """A path, or anything else with a name and bytes."""

    def __str__(self) -> str: ...
    def read_bytes(self) -> bytes: ...


P = TypeVar("P", bound=PictureFile)


class PictureCache:
    """Features under ~/.cache/kshot or KSHOT_CACHE; damaged entries are encoded again.

    Nothing is kept of an encoder whose weights are not known: `root` is None.
    """

    def __init__(self, encoder: Encoder):
        facts = encoder.facts()
        self.root = cache_folder() / "encoded" / fingerprint(facts)[:16] if facts.get("weights_sha256") else None

    def get(self, key: str) -> dict[str, Array] | None:
        from safetensors import SafetensorError

        if self.root is None:
            return None
        try:
            content = _entry(self.root, key).read_bytes()
            stored = unseal_tensors(content)
            return stored if read_about(content).get("key") == key else None
        except (OSError, SafetensorError, ValueError):
            return None

    def put(self, key: str, **tensors: Array) -> None:
        if self.root is None or self.root in _unwritable:
            return
        try:
            write_bytes(_entry(self.root, key), seal_tensors(tensors, {"key": key}))
        except KshotError as error:
            _unwritable.add(self.root)
            logger.warning(f"{error} Going on without the feature cache; KSHOT_CACHE may name another folder for it.")


def _entry(root: Path, key: str) -> Path:
    return root / key[:2] / f"{key}.safetensors"


def fingerprint(facts: dict[str, Any]) -> str:
    """The hash of everything that must match for features to mix."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def cache_folder() -> Path:
    """The folder of KSHOT_CACHE, or ~/.cache/kshot."""
    return Path(os.environ.get("KSHOT_CACHE") or Path.home() / ".cache" / "kshot")


def encode_files(encoder: Encoder, paths: Sequence[PictureFile]) -> Iterator[Encoded | InputError]:
    """The feature of each file in order, or why it has none."""
    cache = PictureCache(encoder)
    with ThreadPoolExecutor(2) as pool:
        for start in range(0, len(paths), BATCH):
            contents = list(pool.map(_read, paths[start : start + BATCH]))
            yield from encode_contents(encoder, contents, cache)


def encode_readable(encoder: Encoder, paths: Sequence[P], unit: str) -> tuple[list[tuple[P, Encoded]], list[str]]:
    """The files that can be read with their features, and why others cannot; progress counts `unit`."""
    read, unreadable = [], []
    with Progress(unit, len(paths), ends=False) as progress:
        for path, result in zip(paths, encode_files(encoder, paths), strict=True):
            if isinstance(result, Encoded):
                read.append((path, result))
            else:
                unreadable.append(str(result))
            progress.advance()
    return read, unreadable


def all_encoded(results: Iterable[Encoded | InputError]) -> list[Encoded]:
    """The features of all pictures, or the error of the first that cannot be read."""
    encoded = []
    for result in results:
        if isinstance(result, InputError):
            raise result
        encoded.append(result)
    return encoded


def encode_contents(
    encoder: Encoder,
    contents: Sequence[tuple[str, bytes] | InputError],
    cache: PictureCache | None,
    most_pixels: int = MOST_PIXELS,
) -> list[Encoded | InputError]:
    """Encode named bytes. Without a cache nothing is written to disk."""
    results: list[Encoded | InputError] = []
    fresh, inputs = [], []
    for item in contents:
        try:
            if isinstance(item, InputError):
                raise item
            name, content = item
            key = hashlib.sha256(content).hexdigest()
            if cache is not None and (known := cache.get(key)):
                results.append(Encoded(key, known["feature"], known["thumbnail"].tobytes()))
                continue
            picture = _decoded(name, content, most_pixels)
        except InputError as error:
            results.append(error)
            continue
        without_feature = Encoded(key, np.empty(0), _thumbnail(picture))
        fresh.append((len(results), without_feature))
        results.append(without_feature)
        inputs.append(encoder.preprocessing(picture))
    features = encoder.encode_images(inputs).astype(np.float32) if inputs else ()
    for (row, one), feature in zip(fresh, features, strict=True):
        results[row] = replace(one, feature=feature)
        if cache is not None:
            cache.put(one.sha256, feature=feature, thumbnail=np.frombuffer(one.thumbnail, np.uint8))
    return results


def encode_names(encoder: Encoder, classes: Sequence[str], template: str) -> dict[str, ClassText]:
    """Text prototypes by class, from the cache if the sentence was encoded before."""
    cache = PictureCache(encoder)
    prompts = from_templates(classes, [template])
    keys = [hashlib.sha256(f"prompt\x1f{own[0]}".encode()).hexdigest() for own in prompts]
    rows = [cache.get(key) or {} for key in keys]
    missing = [row for row, found in enumerate(rows) if not found]
    if missing:
        encoded = encode_tier(encoder.encode_prompts, [prompts[row] for row in missing])
        for row, unit, norm in zip(missing, encoded.unit, encoded.norms, strict=True):
            rows[row] = {"feature": unit.astype(np.float32), "norm": np.array([norm], np.float32)}
            cache.put(keys[row], **rows[row])
    return {name: ClassText(row["feature"], float(row["norm"][0])) for name, row in zip(classes, rows, strict=True)}


def stacked_rows(rows: Iterable[Encoded]) -> Float[Array, "N d"]:
    return np.stack([row.feature for row in rows])


def _read(path: PictureFile) -> tuple[str, bytes] | InputError:
    if isinstance(path, Path) and path.exists() and not path.is_file():
        return InputError(f"{path} is a folder, pipe or device, not a picture; it was not read.")
    try:
        return str(path), path.read_bytes()
    except OSError as error:
        return InputError(f"{path} cannot be read ({error.strerror}).")
    except InputError as error:
        return error


def _decoded(name: str, content: bytes, most_pixels: int) -> Any:
    if not content:
        raise InputError(f"{name} is empty (zero bytes).")
    picture = decode(content, name, as_seen=True, most_pixels=most_pixels)
    if min(picture.size) < 2 or max(picture.size) > 100 * min(picture.size):
        raise InputError(f"{name} is {picture.width} × {picture.height} pixels, too thin to recognise anything.")
    return picture


def _thumbnail(picture: Any) -> bytes:
    small = picture.copy()
    small.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=75)
    return out.getvalue()
