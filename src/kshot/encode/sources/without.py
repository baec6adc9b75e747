"""A source without some of its classes, such as the background class of Caltech101."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kshot.encode.sources.source import Listed, Picture, Shard, Source
from kshot.errors import InputError, unknown


@dataclass(frozen=True)
class Remaining:
    """The pictures of the other classes; `numbers` are their new numbers by the old ones."""

    source: Source
    classes: tuple[str, ...]
    numbers: dict[int, int]

    @property
    def origin(self) -> str:
        return self.source.origin

    @property
    def templates(self) -> tuple[str, ...]:
        return self.source.templates

    def shards(self) -> Sequence[Shard]:
        return self.source.shards()

    def pictures(self, shard: Shard) -> Iterator[Picture]:
        for picture in self.source.pictures(shard):
            if picture.label in self.numbers:
                yield replace(picture, label=self.numbers[picture.label])


def without_classes(source: Source, names: Sequence[str]) -> Source:
    """The source without these classes; the others keep their order."""
    for name in names:
        if name not in source.classes:
            raise InputError(unknown("class", name, source.classes, f"{source.origin} has these."))
    kept = [number for number, name in enumerate(source.classes) if name not in names]
    remaining = Remaining(source, tuple(source.classes[n] for n in kept), {old: new for new, old in enumerate(kept)})
    if not isinstance(source, Listed):
        return remaining if names else source
    rows = [replace(row, label=remaining.numbers[row.label]) for row in source.rows if row.label in remaining.numbers]
    return replace(source, classes=remaining.classes, rows=rows)
