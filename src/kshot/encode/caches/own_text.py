"""Text of an imported cache by an encoder at hand: its class names are enough."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kshot.data.catalog import datasets
from kshot.data.store import Store
from kshot.encode.caches.importing import Imported
from kshot.encode.encoders import load_encoder, stored_name
from kshot.encode.sources.source import Picture, Shard
from kshot.encode.targets import Encoding
from kshot.encode.tiers import encode_tiers, tier_prompts
from kshot.errors import InputError


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


def text_encoder(
    found: Imported, dataset: str, backbone: str, tiers: Sequence[str], template: str | None, weights: Path | None
) -> Callable[[Store], object]:
    """What writes these tiers; the encoder is loaded and held to the features before anything is written."""
    if not tiers:
        return lambda store: None
    entry = datasets().get(dataset)
    source = NamesAlone(dataset, found.classes, entry.templates if entry else ())
    prompts = tier_prompts(source, template or (entry.template if entry else None), tiers, {})
    encoder = load_encoder(backbone, weights)
    if encoder.dim != found.dim:
        raise InputError(f"the features have {found.dim} dimensions, but {backbone} gives {encoder.dim}.")
    job = Encoding(dataset, stored_name(backbone), source, encoder)
    return lambda store: encode_tiers(job, store, prompts)
