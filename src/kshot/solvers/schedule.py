"""What the trained heads share: the learning rates of an epoch, the order of its batches, the softmax."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from kshot.types import Array


def cosine_rates(epochs: int, peak: float, warmup: float) -> Float[Array, " epochs"]:
    """One epoch at `warmup`, then half a cosine from `peak` towards 0 (CLAP's schedule)."""
    rates = peak / 2 * (1 + np.cos(np.pi * (np.arange(epochs) - 1) / epochs))
    rates[:1] = warmup
    return rates


def steps_per_epoch(images: int, size: int) -> int:
    return max(1, images // size)


def batches(seeds: Sequence[int], rows: int, images: int, size: int) -> Iterator[Int[Array, "B b"] | None]:
    """Row numbers of every step, one line per problem; None means all rows, whose order cannot matter.

    Each epoch sorts one uniform draw per row and keeps whole batches. The number of batches counts images,
    the draw counts rows (views included).
    """
    steps = steps_per_epoch(images, size)
    if steps == 1 and rows <= size:
        while True:
            yield None
    generators = [np.random.RandomState(seed) for seed in seeds]
    while True:
        order = np.stack([generator.rand(rows).argsort() for generator in generators])
        for step in range(steps):
            yield order[:, step * size : (step + 1) * size]


def softmax_residual(logits: Float[Array, "B b C"], y: Int[Array, "B b"], factor: float) -> None:
    """Replace logits by factor·(softmax − one-hot), in place."""
    logits -= logits.max(axis=2, keepdims=True)
    np.exp(logits, out=logits)
    logits *= factor / logits.sum(axis=2, keepdims=True)
    problem, row = np.arange(len(y))[:, None], np.arange(y.shape[1])
    logits[problem, row, y] -= factor
