"""A generated world with the geometry of contrastive features. Always labelled simulated.

Pictures live in a narrow cone; classes differ by small directions inside it; the scatter within a class has a
power-law spectrum with a chosen participation ratio. Text prototypes sit in another cone (the common offset),
carry the class directions scaled down, and a class-specific error that makes the prior strong or weak.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kshot.data.store import Store
from kshot.types import Array, Labelled

BACKBONE = "simulated"
TIER = "dataset"
LOGIT_SCALE = 100.0
TEXT_NORM = 10.0


@dataclass(frozen=True, slots=True)
class World:
    """One simulated dataset. Lengths are relative to the image cone, whose length is 1."""

    name: str
    classes: int
    between: float
    within: float
    text_signal: float
    text_error: float
    participation: float = 30.0
    dim: int = 256
    pool_per_class: int = 32
    test_per_class: int = 30


# From strong to weak prior; tests/features/test_simulate.py holds them to the published signature.
WORLDS = {
    world.name: world
    for world in (
        World("sim-pets", 37, between=0.34, within=0.55, text_signal=0.9, text_error=0.25),
        World("sim-food", 50, between=0.32, within=0.60, text_signal=0.9, text_error=0.15),
        World("sim-scenes", 60, between=0.30, within=0.60, text_signal=0.85, text_error=0.3),
        World("sim-cars", 60, between=0.25, within=0.50, text_signal=0.7, text_error=0.4),
        World("sim-textures", 47, between=0.25, within=0.60, text_signal=0.7, text_error=0.5),
        World("sim-satellite", 10, between=0.25, within=0.55, text_signal=0.5, text_error=0.6, participation=12.0),
        World("sim-aircraft", 50, between=0.22, within=0.50, text_signal=0.53, text_error=0.55),
    )
}


@dataclass(frozen=True)
class Sample:
    """A simulated dataset in memory."""

    pool: Labelled
    test: Labelled
    text: Float[Array, "C d"]


def power_law_spectrum(dim: int, participation: float) -> Float[Array, " d"]:
    """Eigenvalues j^(−a) with sum 1 and the participation ratio (sum)²/(sum of squares) asked for."""
    from scipy.optimize import brentq

    def spectrum(exponent: float) -> Float[Array, " d"]:
        values = np.arange(1, dim + 1, dtype=np.float64) ** -exponent
        return values / values.sum()

    def excess(exponent: float) -> float:
        return float(1 / np.sum(spectrum(exponent) ** 2) - participation)

    return spectrum(float(brentq(excess, 0.0, 8.0)))  # pyright: ignore[reportArgumentType]


def sample(world: World) -> Sample:
    """Draw the world; the same world always gives the same arrays."""
    digest = hashlib.sha256(repr(world).encode()).digest()
    rng = np.random.default_rng(np.frombuffer(digest, np.uint32))
    basis = np.linalg.qr(rng.normal(size=(world.dim, world.dim)))[0]
    image_cone, text_cone = basis[-1], basis[-2]
    scatter = np.sqrt(power_law_spectrum(world.dim, world.participation))[:, None] * basis
    directions = rng.normal(size=(world.classes, world.dim)) @ scatter
    error = rng.normal(size=(world.classes, world.dim)) / np.sqrt(world.dim)

    def pictures(per_class: int) -> Labelled:
        labels = np.repeat(np.arange(world.classes), per_class)
        noise = rng.normal(size=(len(labels), world.dim)) @ scatter
        return Labelled(unit(image_cone + world.between * directions[labels] + world.within * noise), labels)

    text = 0.25 * image_cone + text_cone + world.text_signal * directions + world.text_error * error
    return Sample(pictures(world.pool_per_class), pictures(world.test_per_class), unit(text))


def write(world: World, store: Store) -> None:
    """Put the world into the store as if it had been encoded, labelled simulated."""
    drawn = sample(world)
    put(store, world, BACKBONE, {"pool": drawn.pool, "test": drawn.test}, {TIER: drawn.text})


def put(
    store: Store,
    world: World,
    backbone: str,
    parts: Mapping[str, Labelled],
    texts: Mapping[str, Float[Array, "C d"]],
    ids_of: str | None = None,
) -> None:
    """Write parts and text tiers of a generated dataset; ids depend on part and row only, or are those of the part that
    these are views of."""
    classes = [f"class {number}" for number in range(world.classes)]
    about = {
        "simulated": True,
        "source": f"kshot.data.simulated {world!r}",
        "licence": "generated",
        "logit_scale": LOGIT_SCALE,
        "encoder": {"name": "none: generated numbers, no pictures"},
    }
    for part, pictures in parts.items():
        ids = [f"{world.name}/{ids_of or part}/{row:06d}" for row in range(len(pictures.y))]
        X = pictures.X.astype(np.float16)
        store.write_images(world.name, backbone, part, X, pictures.y, ids, classes, **about)
    norms = np.full(world.classes, TEXT_NORM, np.float32)
    for tier, text in texts.items():
        store.write_text(world.name, backbone, tier, text.astype(np.float32), norms, classes, **about)


def is_written(name: str, store: Store) -> bool:
    """Whether all parts of the world are stored; a killed process may have left some."""
    return all(store.has(name, BACKBONE, part) for part in ("pool", "test", f"text-{TIER}"))


def unit(rows: Float[Array, "N d"]) -> Float[Array, "N d"]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
