"""The JSON beside each feature file: what it holds, where it came from, and the hash that proves it."""

import json
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from kshot.errors import FeatureError, KshotError

FORMAT = 1
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


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
    provenance: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_manifest(path: Path) -> Manifest:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise FeatureError(
                f"{path} has feature format {content['format']}; this kshot reads format {FORMAT}. "
                "Encode the features again or install the version that wrote them."
            )
        known = {f.name for f in fields(Manifest)}
        content = {name: value for name, value in content.items() if name in known}
        return Manifest(**{**content, "classes": tuple(content["classes"])})
    except (ValueError, KeyError, TypeError) as error:
        raise FeatureError(
            f"{path} is not a readable manifest ({error}). Encode the features again."
        ) from error


def safe_name(kind: str, name: str) -> str:
    """A name that can stand in a path; anything else never reaches the disk."""
    if not _SAFE.fullmatch(name) or ".." in name:
        raise KshotError(f"{kind} '{name}' cannot be a file name; use letters, digits and . _ + - only.")
    return name
