"""The format of one feature file: tensors mapped into memory, and the JSON beside them that says what they are.

A file is written whole or joined from encoded shards; its manifest says where it came from and holds its hash.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import FeatureError
from kshot.files import json_seal, seal_tensors, unseal_tensors, write_bytes
from kshot.types import Array

FORMAT = 1
# What the store writes.
_DTYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I32": np.int32, "U8": np.uint8}
_CODES = {np.dtype(dtype).name: code for code, dtype in _DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Written after its safetensors file, so its presence means that the file is whole."""

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

    def meaning(self) -> str:
        """A hash of what results depend on: not of who wrote the file, nor of fields that say nothing."""
        about = {"source", "licence", "provenance", "versions", "seal"}
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in about}
        return json_seal({name: value for name, value in told.items() if value not in (None, "", {}, False)})

    def to_json(self) -> str:
        content = asdict(self)
        content["seal"] = json_seal(content)
        return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_manifest(path: Path) -> Manifest:
    """What a file says of itself; one changed letter in it is noticed."""
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


def map_tensors(path: Path) -> dict[str, Array]:
    """Every tensor of a file of the store as a read-only memory map.

    The safetensors library copies tensors into memory, and of a pool's views only the rows of the shots are read.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size:
                raise ValueError("the header is longer than the file")
            header = json.loads(file.read(length))
        whole = np.memmap(path, np.uint8, "r")
        return {name: _view(whole, 8 + length, entry) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FeatureError(f"{path} is not a readable safetensors file ({error}).") from error


def _view(whole: Array, start: int, entry: Any) -> Array:
    low, high = entry["data_offsets"]
    flat = whole[start + low : start + high]
    return flat.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])


def image_tensors(X: Float[Array, "N d"], y: Int[Array, " N"], ids: Sequence[str]) -> dict[str, Array]:
    """Features, labels and ids as they lie in a file."""
    return {
        "features": np.ascontiguousarray(X),
        "labels": y.astype(np.int32),
        "ids": np.frombuffer("\n".join(ids).encode(), np.uint8),
    }


def read_ids(tensors: dict[str, Array]) -> tuple[str, ...]:
    return tuple(tensors["ids"].tobytes().decode().split("\n"))


def write_shard(path: Path, X: Float[Array, "N d"], y: Int[Array, " N"], ids: Sequence[str]) -> None:
    write_bytes(path, seal_tensors(image_tensors(X, y, ids), {}))


def is_whole_shard(path: Path) -> bool:
    """Whether a kept shard is byte for byte what was written."""
    try:
        unseal_tensors(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def join_shards(shards: Sequence[Path], target: Path) -> None:
    """One safetensors file from many, straight from their memory maps; labels first keeps all aligned."""
    shards = [path for path in shards if len(map_tensors(path)["labels"])]
    mapped = [map_tensors(path) for path in shards]
    rows = sum(len(tensors["labels"]) for tensors in mapped)
    features = mapped[0]["features"]
    id_bytes = sum(tensors["ids"].size for tensors in mapped) + len(mapped) - 1
    layout = {
        "labels": ("int32", [rows], rows * 4),
        "features": (str(features.dtype), [rows, features.shape[1]], rows * features[0].nbytes),
        "ids": ("uint8", [id_bytes], id_bytes),
    }
    header, start = {}, 0
    for name, (dtype, shape, size) in layout.items():
        header[name] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with target.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in layout:
            for number, path in enumerate(shards):
                if name == "ids" and number:
                    file.write(b"\n")
                file.write(map_tensors(path)[name].reshape(-1).view(np.uint8).data)
