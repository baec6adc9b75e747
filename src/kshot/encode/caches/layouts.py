"""The files of a cache by what they hold: named by the options of `kshot import`, or by known tools."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kshot.encode.caches.arrays import Address, find_address
from kshot.errors import InputError
from kshot.files import safe_name


@dataclass(frozen=True, slots=True)
class PartFiles:
    """Where the features, labels and ids of one part lie; `averaged` where rows are means over augmented views."""

    features: Address
    labels: Address
    ids: Address | None = None
    averaged: bool = False


@dataclass(frozen=True, slots=True)
class Cache:
    """Everything that becomes one dataset of the store; part `views` holds augmented views of the pool."""

    layout: str
    parts: dict[str, PartFiles]
    text: dict[str, Address] = field(default_factory=dict)
    classes: Address | None = None
    unused: tuple[Path, ...] = ()

    def files(self) -> list[Path]:
        """Every file that is read, once."""
        parts = [a for part in self.parts.values() for a in (part.features, part.labels, part.ids)]
        return list(dict.fromkeys(a.file for a in (*parts, *self.text.values(), self.classes) if a is not None))


def named_cache(source: Path, parts: Mapping[str, str], text: Sequence[str], classes: str | None) -> Cache:
    """The parts that are named (`FEATURES,LABELS` or `FEATURES,LABELS,IDS`), or those of a known folder."""
    if not source.exists():
        raise InputError(f"there is nothing at {source}.")
    file = source if source.is_file() else None
    if parts:
        given = {part: _part_files(part, words, source, file) for part, words in parts.items()}
        cache = Cache("named", given)
    elif file is not None:
        raise InputError(f"say what {file.name} holds: --pool FEATURES,LABELS --test FEATURES,LABELS by its keys.")
    else:
        cache = find_layout(source)
    tiers = {}
    for entry in text:
        tier, equals, words = entry.partition("=")
        if not (equals and tier and words):
            raise InputError(f"--text {entry}: write TIER=FILE, TIER=FILE:KEY or TIER=KEY.")
        tiers[safe_name("tier", tier)] = find_address(words, source, file)
    # A text file of the folder keeps the tier of its name unless it is given another.
    tiers |= {tier: found for tier, found in cache.text.items() if found not in tiers.values()}
    names = None if classes is None else find_address(classes, source, file)
    taken = {*(address.file for address in tiers.values()), *([names.file] if names else [])}
    return replace(cache, text=tiers, classes=names, unused=tuple(p for p in cache.unused if p not in taken))


def _part_files(part: str, words: str, source: Path, file: Path | None) -> PartFiles:
    given = words.split(",")
    if len(given) not in (2, 3) or not all(given):
        raise InputError(f"--{part} {words}: write FEATURES,LABELS or FEATURES,LABELS,IDS.")
    features = find_address(given[0], source, file)
    labels, *ids = (find_address(word, source, features.file) for word in given[1:])
    return PartFiles(features, labels, ids[0] if ids else None)


def find_layout(folder: Path) -> Cache:
    """Recognise the layout of a folder by its file names."""
    for name, recognise in LAYOUTS.items():
        parts = recognise(folder)
        if parts:
            cache = Cache(name, parts, _text_files(folder))
            return replace(cache, unused=tuple(p for p in sorted(folder.glob("*.pt")) if p not in cache.files()))
    raise InputError(
        f"{folder} is no cache that kshot knows ({', '.join(LAYOUTS)}). Say where the features are: --pool "
        "FILE:FEATURES,LABELS --test FILE:FEATURES,LABELS."
    )


def _tip_adapter(folder: Path) -> dict[str, PartFiles]:
    """Tip-Adapter and its descendants: keys (d × N) are means over augmented views, values are one-hot rows."""
    shots = _shots(folder, "keys_*shots.pt", r"keys_(\d+)shots")
    return {"pool": _keys(folder, max(shots)), **_held_out(folder)} if shots else {}


def _gda(folder: Path) -> dict[str, PartFiles]:
    """GDA's descendants keep every view beside Tip-Adapter's files: K_vecs_f.pt and K_labels_f.pt, view after view."""
    shots = _shots(folder, "*_vecs_f.pt", r"(\d+)_vecs_f")
    if not shots:
        return {}
    most = max(shots)
    keys = {"pool": _keys(folder, most)} if (folder / f"keys_{most}shots.pt").is_file() else {}
    return {**keys, "views": _pair(folder, f"{most}_vecs_f.pt", f"{most}_labels_f.pt"), **_held_out(folder)}


def _clap(folder: Path) -> dict[str, PartFiles]:
    """What CLAP's trainer holds, saved under its own names: 20 views of each shot, view after view, shuffled anew."""
    if not (folder / "features_train.pt").is_file() or not (folder / "labels_train.pt").is_file():
        return {}
    train, test = (_pair(folder, f"features_{part}.pt", f"labels_{part}.pt") for part in ("train", "test"))
    return {"views": train, "test": test}


def _shots(folder: Path, files: str, named: str) -> list[int]:
    return [int(m[1]) for path in folder.glob(files) if (m := re.fullmatch(named, path.stem))]


def _keys(folder: Path, shots: int) -> PartFiles:
    return replace(_pair(folder, f"keys_{shots}shots.pt", f"values_{shots}shots.pt"), averaged=True)


def _held_out(folder: Path) -> dict[str, PartFiles]:
    """Validation and test rows; of ImageNet some keep the test rows under the name of validation."""
    val = {"val": _pair(folder, "val_f.pt", "val_l.pt")} if (folder / "val_f.pt").is_file() else {}
    if val and not (folder / "test_f.pt").is_file():
        return {"test": val["val"]}
    return {**val, "test": _pair(folder, "test_f.pt", "test_l.pt")}


def _clip_benchmark(folder: Path) -> dict[str, PartFiles]:
    """clip_benchmark's linear probe: features_SPLIT.pt and targets_SPLIT.pt; older versions call the test split val."""
    if not (folder / "features_train.pt").is_file():
        return {}
    found = [split for split in ("train", "val", "test") if (folder / f"features_{split}.pt").is_file()]
    names = {"train": "pool", "val": "val" if "test" in found else "test", "test": "test"}
    return {names[split]: _pair(folder, f"features_{split}.pt", f"targets_{split}.pt") for split in found}


LAYOUTS: dict[str, Callable[[Path], dict[str, PartFiles]]] = {
    "gda": _gda,
    "tip-adapter": _tip_adapter,
    "clap": _clap,
    "clip-benchmark": _clip_benchmark,
}


def _pair(folder: Path, features: str, labels: str) -> PartFiles:
    for name in (features, labels):
        if not (folder / name).is_file():
            raise InputError(f"{folder} lacks {name}.")
    return PartFiles(Address(folder / features), Address(folder / labels))


def _text_files(folder: Path) -> dict[str, Address]:
    """text_weights.pt is tier `text`, text_weights_llm.pt tier `llm`."""
    return {
        path.stem.removeprefix("text_weights").strip("_") or "text": Address(path)
        for path in sorted(folder.glob("text_weights*.pt"))
    }
