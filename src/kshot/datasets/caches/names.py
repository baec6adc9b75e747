"""A dataset of which only the class names are at hand: enough to encode its text."""

from collections.abc import Iterator
from dataclasses import dataclass

from kshot.encode.sources.source import Picture, Shard


@dataclass(frozen=True)
class NamesAlone:
    """A source without pictures."""

    origin: str
    classes: tuple[str, ...]
    templates: tuple[str, ...] = ()

    def shards(self) -> list[Shard]:
        return []

    def pictures(self, shard: Shard) -> Iterator[Picture]:
        return iter(())
