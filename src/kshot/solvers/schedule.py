"""Learning rates of the epochs and batches of the steps, for the trained heads."""

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from kshot.types import Array


def half_cosine(steps: Int[Array, " n"], period: int, peak: float) -> Float[Array, " n"]:
    """From `peak` at step 0 to 0 at step `period`."""
    return peak / 2 * (1 + np.cos(np.pi * steps / period))


def cosine_rates(epochs: int, peak: float, warmup: float) -> Float[Array, " epochs"]:
    """One epoch at `warmup`, then half a cosine from `peak` towards 0 (CLAP's schedule)."""
    rates = half_cosine(np.arange(epochs) - 1, epochs, peak)
    rates[:1] = warmup
    return rates


def steps_per_epoch(images: int, size: int, *, keep_short: bool = False) -> int:
    return -(-images // size) if keep_short else max(1, images // size)


def batches(
    seed: int, rows: int, images: int, size: int, *, keep_short: bool = False
) -> Iterator[Int[Array, " b"] | None]:
    """Row numbers of every step; None means all rows, whose order cannot matter.

    Each epoch sorts one uniform draw per row and keeps whole batches, or the short last one too. The number of
    batches counts images, the draw counts rows (views included).
    """
    steps = steps_per_epoch(images, size, keep_short=keep_short)
    if steps == 1 and rows <= size:
        while True:
            yield None
    generator = np.random.RandomState(seed)
    while True:
        order = generator.rand(rows).argsort()
        for step in range(steps):
            yield order[step * size : (step + 1) * size]


def training_steps(
    views: Sequence[Float[Array, "N d"]],
    y: Int[Array, " N"],
    steps: Iterator[Int[Array, " b"] | None],
    rates: Float[Array, " T"],
    per_epoch: int = 1,
) -> Iterator[tuple[Float[Array, "b d"], Int[Array, " b"], float]]:
    """Rows, labels and learning rate of every step; epoch e learns from view e mod V."""
    for step, rate in enumerate(rates.tolist()):
        chosen = next(steps)
        rows = slice(None) if chosen is None else chosen
        yield views[step // per_epoch % len(views)][rows], y[rows], rate


def last_state(states: Iterator[Array]) -> Array:
    """The last of the states."""
    return deque(states, maxlen=1).pop()
