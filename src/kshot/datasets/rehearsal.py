"""The paper's datasets and encoders with generated numbers in place of pictures, small enough to run everything.

A rehearsal shows that every arm, probe, table and comparison works from end to end. Its numbers say nothing about the
paper, and every part is labelled simulated.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from kshot.datasets.simulated import Sample, World, put, sample, unit
from kshot.features import catalog
from kshot.features.store import Store
from kshot.types import Array, Labelled

# Strength of the text prior and classes of each dataset; from the strong priors of the paper to the weak ones.
WORLDS: Mapping[str, World] = {
    name: World(name, classes, between, 0.5, signal, error, 8.0, 24, pool_per_class=24, test_per_class=12)
    for name, classes, between, signal, error in (
        ("Aircraft", 6, 0.24, 0.4, 0.7),
        ("Caltech101", 7, 0.45, 0.8, 0.3),
        ("Cars", 8, 0.30, 0.6, 0.5),
        ("DTD", 5, 0.30, 0.5, 0.6),
        ("EuroSAT", 4, 0.30, 0.4, 0.8),
        ("Flowers102", 7, 0.45, 0.6, 0.5),
        ("Food101", 6, 0.40, 0.9, 0.2),
        ("ImageNet", 8, 0.35, 0.7, 0.4),
        ("Pets", 5, 0.40, 0.9, 0.2),
        ("SUN397", 7, 0.35, 0.6, 0.5),
        ("UCF101", 6, 0.35, 0.6, 0.5),
    )
}
BACKBONES = (
    "RN50",
    "ViT-B-32",
    "ViT-B-16",
    "ViT-L-14",
    "SigLIP-B-16",
    "SigLIP2-B-16",
    "DINOv2-B-14",
    "DINOv3-B-16",
)
FEW_IN_POOL = {"Flowers102": 10}
# How far each tier's text is from the best one.
TIER_ERROR = {"photo": 0.35, "dataset": 0.2, "ensemble": 0.1, "cupl": 0.15}


def write_rehearsal(store: Store, backbones: Iterable[str] = BACKBONES, protocol: str = "") -> int:
    """Write every dataset for these encoders (the paper's unless given); returns the number of strata.

    Another `protocol` draws other pictures, as other splits of a dataset do, and adds its name to the dataset's.
    """
    written = 0
    for backbone in backbones:
        for world in WORLDS.values():
            _write(store, world, backbone, protocol)
            written += 1
    return written


def _write(store: Store, world: World, backbone: str, protocol: str) -> None:
    sized = replace(world, pool_per_class=FEW_IN_POOL.get(world.name, world.pool_per_class))
    drawn = sample(replace(sized, name=f"{world.name} {backbone} {protocol}"))
    texts = {}
    if catalog.backbones()[backbone].text:
        texts = {tier: _further(drawn.text, error, tier) for tier, error in TIER_ERROR.items()}
    named = replace(sized, name=f"{world.name}-{protocol}" if protocol else world.name)
    put(store, named, backbone, _parts(world.name, drawn), texts)


def _parts(dataset: str, drawn: Sample) -> dict[str, Labelled]:
    """Pool and test, or one part where the dataset has no official split."""
    if catalog.datasets()[dataset].split != "self":
        return {"pool": drawn.pool, "test": drawn.test}
    return {"all": Labelled(*(np.concatenate(arrays) for arrays in zip(drawn.pool, drawn.test, strict=True)))}


def _further(text: Float[Array, "C d"], error: float, tier: str) -> Float[Array, "C d"]:
    noise = np.random.default_rng(list(tier.encode())).normal(size=text.shape)
    return unit(text + error * noise / np.sqrt(text.shape[1]))
