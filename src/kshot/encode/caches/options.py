"""From the words of a command line to a cache."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kshot.encode.caches.arrays import find_address
from kshot.encode.caches.layouts import Cache, PartFiles, find_layout
from kshot.errors import InputError
from kshot.files import safe_name

FEATURES_LABELS_IDS = (2, 3)


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
    if len(given) not in FEATURES_LABELS_IDS or not all(given):
        raise InputError(f"--{part} {words}: write FEATURES,LABELS or FEATURES,LABELS,IDS.")
    features = find_address(given[0], source, file)
    labels, *ids = (find_address(word, source, features.file) for word in given[1:])
    return PartFiles(features, labels, ids[0] if ids else None)
