"""What trained heads share: learning rates, batches, the gradient of the loss, and in-place update rules."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks
from kshot.types import Array

Update: TypeAlias = Callable[[Sequence[Array], float], None]

BETA1, BETA2 = 0.9, 0.999
# Numbers per block: Adam passes over its arrays a dozen times, and temporaries this small stay in the cache
# and are never given back to the system, whose fresh pages cost more than the arithmetic.
BLOCK = 24 * 1024


def half_cosine(steps: Int[Array, " n"], period: int, peak: float) -> Float[Array, " n"]:
    """From `peak` at step 0 to 0 at step `period`."""
    return peak / 2 * (1 + np.cos(np.pi * steps / period))


def cosine_rates(epochs: int, peak: float, warmup: float, steps: int = 1) -> Float[Array, " T"]:
    """CLAP's schedule: an epoch of so many steps at `warmup`, then half a cosine from `peak` towards 0 by epochs."""
    rates = half_cosine(np.arange(epochs) - 1, epochs, peak)
    rates[:1] = warmup
    return np.repeat(rates, steps)


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


def softmax_residual(logits: Float[Array, "b C"], y: Int[Array, " b"], factor: float, *, in_turn: bool = False) -> None:
    """Replace logits by factor·(softmax − one-hot), in place; `in_turn` adds the classes up one after another."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    total = np.cumsum(logits, axis=1)[:, -1:] if in_turn else logits.sum(axis=1, keepdims=True)
    logits *= factor / total
    logits[np.arange(len(y)), y] -= factor


def momentum_sgd(weights: Sequence[Array], momentum: float = 0.9) -> Update:
    """v = momentum·v + g; w −= rate·v."""
    velocities = [np.zeros_like(w) for w in weights]

    def update(gradients: Sequence[Array], rate: float) -> None:
        for w, v, g in zip(weights, velocities, gradients, strict=True):
            v *= momentum
            v += g
            w -= rate * v

    return update


def adam(weights: Sequence[Array], *, eps: float = 1e-8, weight_decay: float = 0.0) -> Update:
    """Adam; decay is part of the gradient (Kingma and Ba, 2015, Algorithm 1, with an L2 penalty)."""
    return _adam(weights, eps, in_gradient=weight_decay)


def adamw(weights: Sequence[Array], *, eps: float = 1e-8, weight_decay: float = 0.01) -> Update:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019, Algorithm 2)."""
    return _adam(weights, eps, decoupled=weight_decay)


def _adam(weights: Sequence[Array], eps: float, *, in_gradient: float = 0.0, decoupled: float = 0.0) -> Update:
    firsts = [np.zeros_like(w) for w in weights]
    seconds = [np.zeros_like(w) for w in weights]
    steps = 0

    def update(gradients: Sequence[Array], rate: float) -> None:
        nonlocal steps
        steps += 1
        correct1, correct2 = 1 - BETA1**steps, 1 - BETA2**steps
        for w, m, v, g in _blocks(weights, firsts, seconds, gradients):
            if in_gradient:
                g = g + in_gradient * w
            change = g - m
            change *= 1 - BETA1
            m += change
            np.multiply(g, g, out=change)
            change -= v
            change *= 1 - BETA2
            v += change
            if decoupled:
                w *= 1 - rate * decoupled
            root = np.divide(v, correct2, out=change)
            np.sqrt(root, out=root)
            root += eps
            step = (rate / correct1) * m
            step /= root
            w -= step

    return update


def _blocks(*lists: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
    """The same rows of each list's first array, then the next rows, then those of the second array."""
    for arrays in zip(*lists, strict=True):
        rows = max(1, BLOCK * len(arrays[0]) // arrays[0].size)
        for here in row_blocks(len(arrays[0]), rows):
            yield tuple(array[here] for array in arrays)
