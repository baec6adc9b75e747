"""The files of a cache by what they hold: named by the options of `kshot import`, or by known tools."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from kshot.encode.caches.arrays import Address, find_address, list_arrays
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
    """The parts that options name (`FEATURES,LABELS` or `FEATURES,LABELS,IDS`), or those of a known layout."""
    if not source.exists():
        raise InputError(f"there is nothing at {source}.")
    file = source if source.is_file() else None
    if parts:
        given = {part: _part_files(part, words, source, file) for part, words in parts.items()}
        cache = Cache("named", given)
    elif file is not None:
        raise InputError(
            f"{file.name} holds {list_arrays(file) or 'no array that kshot reads'}. Say which of them is what: "
            "--pool FEATURES,LABELS --test FEATURES,LABELS --text TIER=KEY --classes FILE:KEY; or, for rows without a "
            "split, --all FEATURES,LABELS."
        )
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
    for name, layout in LAYOUTS.items():
        if parts := _parts_of(folder, layout):
            cache = Cache(name, parts, _text_files(folder))
            return replace(cache, unused=tuple(p for p in sorted(folder.glob("*.pt")) if p not in cache.files()))
    raise InputError(
        f"{folder} is no cache that kshot knows ({', '.join(LAYOUTS)}). Say where the features are: --pool "
        "FILE:FEATURES,LABELS --test FILE:FEATURES,LABELS."
    )


class Layout(NamedTuple):
    """File names without .pt: the one that identifies the layout, and features and labels of each part.

    {n} is the largest number of shots in the folder. Only the test part, or `val` in its place, must be there.
    """

    known_by: str
    parts: dict[str, tuple[str, str]]


_TIP_ADAPTER = {"pool": ("keys_{n}shots", "values_{n}shots"), "val": ("val_f", "val_l"), "test": ("test_f", "test_l")}
_CLAP = {"views": ("features_train", "labels_train"), "test": ("features_test", "labels_test")}
_SPLITS = {"pool": "train", "val": "val", "test": "test"}
LAYOUTS = {
    # GDA's descendants keep every view beside Tip-Adapter's files, view after view.
    "gda": Layout("{n}_vecs_f", {**_TIP_ADAPTER, "views": ("{n}_vecs_f", "{n}_labels_f")}),
    # Tip-Adapter and its descendants: keys (d × N) are means over augmented views, values are one-hot rows. Of ImageNet
    # some keep the test rows under the name of validation.
    "tip-adapter": Layout("keys_{n}shots", _TIP_ADAPTER),
    # The tensors of CLAP's trainer by their names there: 20 views of each shot, each view in another order.
    "clap": Layout("labels_train", _CLAP),
    # clip_benchmark's linear probe; older versions call the test split val.
    "clip-benchmark": Layout(
        "features_train", {part: (f"features_{split}", f"targets_{split}") for part, split in _SPLITS.items()}
    ),
}


def _parts_of(folder: Path, layout: Layout) -> dict[str, PartFiles]:
    """The parts that a folder has of a layout; none if it is of another layout."""
    pattern = layout.known_by.replace("{n}", r"(\d+)")
    found = [m for path in folder.glob("*.pt") if (m := re.fullmatch(pattern, path.stem))]
    if not found:
        return {}
    shots = max(int(m[1]) if m.groups() else 0 for m in found)
    parts = {}
    for part, names in layout.parts.items():
        features, labels = (Address(folder / f"{name.format(n=shots)}.pt") for name in names)
        if features.file.is_file() or part == "test":
            parts[part] = PartFiles(features, labels, averaged=names[0].startswith("keys_"))
    if "val" in parts and not parts["test"].features.file.is_file():
        parts["test"] = parts.pop("val")
    for file in (address.file for own in parts.values() for address in (own.features, own.labels)):
        if not file.is_file():
            raise InputError(f"{folder} lacks {file.name}.")
    return parts


def _text_files(folder: Path) -> dict[str, Address]:
    """text_weights.pt is tier `text`, text_weights_llm.pt tier `llm`."""
    return {
        path.stem.removeprefix("text_weights").strip("_") or "text": Address(path)
        for path in sorted(folder.glob("text_weights*.pt"))
    }
