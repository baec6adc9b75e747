"""Picture files to unit features, each remembered by the hash of its content and of the encoder."""

import hashlib
import io
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from kshot.encode.pictures import decode
from kshot.encode.prompts import encode_tier, from_templates
from kshot.encode.protocol import Encoder, PromptFeatures
from kshot.errors import InputError, KshotError
from kshot.files import read_about, seal_tensors, unseal_tensors, write_bytes
from kshot.progress import Progress
from kshot.types import Array

logger = logging.getLogger("kshot")

BATCH = 32
THUMBNAIL_PIXELS = 96
T = TypeVar("T")
# Told once, however many commands of one program meet it.
_unwritable: set[Path] = set()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture as the head sees it, and small enough to be shown again: feature (d,) and a JPEG."""

    sha256: str
    feature: Array
    thumbnail: bytes


class PictureCache:
    """Features under ~/.cache/kshot, or where KSHOT_CACHE points; a damaged entry is encoded again, and a folder
    that cannot be written costs a warning, not the work."""

    def __init__(self, encoder: Encoder):
        home = os.environ.get("KSHOT_CACHE") or Path.home() / ".cache" / "kshot"
        self.root = Path(home) / "encoded" / fingerprint(encoder.facts())[:16]

    def get(self, key: str) -> dict[str, Array] | None:
        from safetensors import SafetensorError

        try:
            content = self._path(key).read_bytes()
            stored = unseal_tensors(content)
            return stored if read_about(content).get("key") == key else None
        except (OSError, SafetensorError, ValueError):
            return None

    def put(self, key: str, **tensors: Array) -> None:
        if self.root in _unwritable:
            return
        try:
            write_bytes(self._path(key), seal_tensors(tensors, {"key": key}))
        except KshotError as error:
            _unwritable.add(self.root)
            logger.warning(f"{error} Going on without the feature cache; KSHOT_CACHE may name another folder for it.")

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}.safetensors"


def fingerprint(facts: dict[str, Any]) -> str:
    """One hash for everything that must match for features to mix."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def encode_files(encoder: Encoder, paths: Sequence[Path]) -> Iterator[Encoded | InputError]:
    """Every file in its turn: its features, or why it has none."""
    cache = PictureCache(encoder)
    with ThreadPoolExecutor(2) as pool:
        for some in _batches(paths, BATCH):
            yield from encode_contents(encoder, list(pool.map(_content, some)), cache)


def encode_contents(
    encoder: Encoder, contents: Sequence[tuple[str, bytes] | InputError], cache: PictureCache | None, **limits: int
) -> list[Encoded | InputError]:
    """Named bytes to features; `limits` go to the decoder. Without a cache nothing is written anywhere."""
    encoded: list[Encoded | InputError | None] = []
    inputs, keys, thumbnails = [], [], []
    for item in contents:
        if isinstance(item, InputError):
            encoded.append(item)
            continue
        name, content = item
        key = hashlib.sha256(content).hexdigest()
        known = cache.get(key) if cache is not None else None
        if known is not None:
            encoded.append(Encoded(key, known["feature"], known["thumbnail"].tobytes()))
            continue
        try:
            picture = _decoded(name, content, **limits)
        except InputError as error:
            encoded.append(error)
            continue
        encoded.append(None)
        inputs.append(encoder.preprocessing(picture))
        thumbnails.append(_thumbnail(picture))
        keys.append(key)
    fresh = iter(())
    if inputs:
        rows = encoder.encode_images(np.stack(inputs)).astype(np.float32)
        fresh = iter([Encoded(k, row, t) for k, row, t in zip(keys, rows, thumbnails, strict=True)])
    for row, item in enumerate(encoded):
        if item is None:
            own = next(fresh)
            if cache is not None:
                pixels = np.frombuffer(own.thumbnail, np.uint8)
                cache.put(own.sha256, feature=own.feature, thumbnail=pixels)
            encoded[row] = own
    return [item for item in encoded if item is not None]


def encode_names(encoder: Encoder, classes: Sequence[str], template: str) -> PromptFeatures:
    """Text prototypes of the classes, from the cache where the sentence was met before."""
    cache = PictureCache(encoder)
    prompts = from_templates(classes, [template])
    keys = [hashlib.sha256(f"prompt\x1f{own[0]}".encode()).hexdigest() for own in prompts]
    rows = [cache.get(key) or {} for key in keys]
    missing = [row for row, found in enumerate(rows) if not found]
    if missing:
        with Progress("prompts", len(missing), ends=False) as progress:
            encoded = encode_tier(encoder.encode_prompts, [prompts[row] for row in missing], progress.advance)
        for row, unit, norm in zip(missing, encoded.unit, encoded.norms, strict=True):
            rows[row] = {"feature": unit.astype(np.float32), "norm": np.array([norm], np.float32)}
            cache.put(keys[row], **rows[row])
    return PromptFeatures(np.stack([r["feature"] for r in rows]), np.concatenate([r["norm"] for r in rows]))


def stacked_rows(rows: Iterable[Encoded]) -> Float[Array, "N d"]:
    return np.stack([row.feature for row in rows])


def _content(path: Path) -> tuple[str, bytes] | InputError:
    try:
        return str(path), path.read_bytes()
    except OSError as error:
        return InputError(f"{path} cannot be read ({error.strerror}).")


def _decoded(name: str, content: bytes, **limits: int):
    if not content:
        raise InputError(f"{name} is empty (zero bytes).")
    picture = decode(content, name, as_seen=True, **limits)
    if min(picture.size) < 2 or max(picture.size) > 100 * min(picture.size):
        raise InputError(f"{name} is {picture.width} × {picture.height} pixels, too thin to recognise anything.")
    return picture


def _thumbnail(picture) -> bytes:
    small = picture.copy()
    small.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=75)
    return out.getvalue()


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some
