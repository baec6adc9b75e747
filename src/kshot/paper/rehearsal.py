"""Simulated features under the paper's dataset and encoder names, small enough to run every arm, probe and table.

All of it is labelled simulated; its numbers say nothing about the paper.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import product

import numpy as np
from jaxtyping import Float

from kshot.data import catalog
from kshot.data.simulated import Sample, World, put, sample, unit
from kshot.data.store import Store, view_part
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
BACKBONES = ("RN50", "ViT-B-32", "ViT-B-16", "ViT-L-14", "SigLIP-B-16", "SigLIP2-B-16", "DINOv2-B-14", "DINOv3-B-16")
COOP = "-coop"
COOP_BACKBONES = ("RN50", "ViT-B-16")
# Augmented views of one encoder's pools.
VIEWED_BACKBONE, VIEWS, VIEW_ERROR = "ViT-B-16", {"clap": 20}, 0.3
FEW_IN_POOL = {"Flowers102": 10}
# How far each tier's text is from the best one.
TIER_ERROR = {"photo": 0.35, "dataset": 0.2, "ensemble": 0.1, "cupl": 0.15}


def write_rehearsal(store: Store, datasets: Collection[str] = tuple(WORLDS)) -> int:
    """Write these datasets for every encoder, CoOp's splits for two and augmented views for one; returns how many
    strata."""
    worlds = [WORLDS[name] for name in datasets]
    for backbone, world in product(BACKBONES, worlds):
        write_stratum(store, world, backbone, VIEWS if backbone == VIEWED_BACKBONE else None)
    for backbone, world in product(COOP_BACKBONES, worlds):
        write_stratum(store, replace(world, name=world.name + COOP), backbone)
    return (len(BACKBONES) + len(COOP_BACKBONES)) * len(worlds)


def write_stratum(store: Store, world: World, backbone: str, views: Mapping[str, int] | None = None) -> None:
    """Write one dataset for one encoder: pictures, text of every tier, and the given number of views by each recipe."""
    few = FEW_IN_POOL.get(world.name.removesuffix(COOP), world.pool_per_class)
    sized = replace(world, pool_per_class=few)
    drawn = sample(replace(sized, name=f"{world.name} {backbone}"))
    texts = {}
    if catalog.backbones()[backbone].text:
        texts = {tier: _perturbed(drawn.text, error, tier) for tier, error in TIER_ERROR.items()}
    parts = _parts(world.name, drawn)
    put(store, sized, backbone, parts, texts)
    base, pictures = next(iter(parts.items()))
    augmented = {
        view_part(base, recipe, number): Labelled(_perturbed(pictures.X, VIEW_ERROR, f"{recipe}{number}"), pictures.y)
        for recipe, count in (views or {}).items()
        for number in range(count)
    }
    put(store, sized, backbone, augmented, {}, ids_of=base)


def _parts(dataset: str, drawn: Sample) -> dict[str, Labelled]:
    """Pool and test, or one part where the dataset has no official split."""
    known = catalog.datasets().get(dataset)
    if known is None or known.split != "self":
        return {"pool": drawn.pool, "test": drawn.test}
    return {"all": Labelled(*(np.concatenate(arrays) for arrays in zip(drawn.pool, drawn.test, strict=True)))}


def _perturbed(rows: Float[Array, "N d"], error: float, seed: str) -> Float[Array, "N d"]:
    noise = np.random.default_rng(list(seed.encode())).normal(size=rows.shape)
    return unit(rows + error * noise / np.sqrt(rows.shape[1]))
