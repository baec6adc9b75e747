"""Folders of features as known tools leave them: which file is what."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kshot.encode.caches.arrays import Address
from kshot.errors import InputError


@dataclass(frozen=True, slots=True)
class PartFiles:
    """Where the features, labels and ids of one part lie; `averaged` where rows are means over augmented views."""

    features: Address
    labels: Address
    ids: Address | None = None
    averaged: bool = False


@dataclass(frozen=True, slots=True)
class Cache:
    """Everything that becomes one dataset of the store."""

    layout: str
    parts: dict[str, PartFiles]
    text: dict[str, Address] = field(default_factory=dict)
    classes: Address | None = None
    unused: tuple[Path, ...] = ()

    def files(self) -> list[Path]:
        """Every file that is read, once."""
        parts = [a for part in self.parts.values() for a in (part.features, part.labels, part.ids)]
        return list(dict.fromkeys(a.file for a in (*parts, *self.text.values(), self.classes) if a is not None))


def find_layout(folder: Path) -> Cache:
    """The cache that a folder is."""
    for name, recognise in LAYOUTS.items():
        parts = recognise(folder)
        if parts:
            cache = Cache(name, parts, _text_files(folder))
            others = (path for path in sorted(folder.glob("*.pt")) if path not in cache.files())
            return Cache(cache.layout, cache.parts, cache.text, unused=tuple(others))
    raise InputError(
        f"{folder} is no cache that kshot knows ({', '.join(LAYOUTS)}). Say where the features are: --pool "
        "FILE:FEATURES,LABELS --test FILE:FEATURES,LABELS."
    )


def _tip_adapter(folder: Path) -> dict[str, PartFiles]:
    """Tip-Adapter and its descendants: keys (d × N) are means over augmented views, values are one-hot rows."""
    shots = [int(m[1]) for p in folder.glob("keys_*shots.pt") if (m := re.fullmatch(r"keys_(\d+)shots", p.stem))]
    if not shots:
        return {}
    most = max(shots)
    pool = _pair(folder, f"keys_{most}shots.pt", f"values_{most}shots.pt", averaged=True)
    return {
        "pool": pool,
        **_optional(folder, "val", "val_f.pt", "val_l.pt"),
        "test": _pair(folder, "test_f.pt", "test_l.pt"),
    }


def _clip_benchmark(folder: Path) -> dict[str, PartFiles]:
    """clip_benchmark's linear probe: features_SPLIT.pt and targets_SPLIT.pt; older versions call the test split val."""
    if not (folder / "features_train.pt").is_file():
        return {}
    pool = {"pool": _pair(folder, "features_train.pt", "targets_train.pt")}
    if not (folder / "features_test.pt").is_file():
        return {**pool, "test": _pair(folder, "features_val.pt", "targets_val.pt")}
    val = _optional(folder, "val", "features_val.pt", "targets_val.pt")
    return {**pool, **val, "test": _pair(folder, "features_test.pt", "targets_test.pt")}


LAYOUTS: dict[str, Callable[[Path], dict[str, PartFiles]]] = {
    "tip-adapter": _tip_adapter,
    "clip-benchmark": _clip_benchmark,
}


def _pair(folder: Path, features: str, labels: str, averaged: bool = False) -> PartFiles:
    for name in (features, labels):
        if not (folder / name).is_file():
            raise InputError(f"{folder} lacks {name}.")
    return PartFiles(Address(folder / features), Address(folder / labels), averaged=averaged)


def _optional(folder: Path, part: str, features: str, labels: str) -> dict[str, PartFiles]:
    return {part: _pair(folder, features, labels)} if (folder / features).is_file() else {}


def _text_files(folder: Path) -> dict[str, Address]:
    """text_weights.pt is tier `text`, text_weights_llm.pt tier `llm`."""
    texts = {}
    for path in sorted(folder.glob("text_weights*.pt")):
        texts[path.stem.removeprefix("text_weights").strip("_") or "text"] = Address(path)
    return texts
