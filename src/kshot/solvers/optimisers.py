"""In-place update rules for a list of weights; both remember what they need between calls."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from kshot.solvers.rows import row_blocks
from kshot.types import Array

Update: TypeAlias = Callable[[Sequence[Array], float], None]

# Numbers per block: AdamW passes over its arrays a dozen times, and temporaries this small stay in the cache
# and are never given back to the system, whose fresh pages cost more than the arithmetic.
BLOCK = 24 * 1024


def momentum_sgd(weights: Sequence[Array], momentum: float = 0.9) -> Update:
    """v = momentum·v + g; w −= rate·v."""
    velocities = [np.zeros_like(w) for w in weights]

    def update(gradients: Sequence[Array], rate: float) -> None:
        for w, v, g in zip(weights, velocities, gradients, strict=True):
            v *= momentum
            v += g
            w -= rate * v

    return update


def adamw(
    weights: Sequence[Array],
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> Update:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019, Algorithm 2)."""
    firsts = [np.zeros_like(w) for w in weights]
    seconds = [np.zeros_like(w) for w in weights]
    steps = 0

    def update(gradients: Sequence[Array], rate: float) -> None:
        nonlocal steps
        steps += 1
        correct1, correct2 = 1 - beta1**steps, 1 - beta2**steps
        for w, m, v, g in _blocks(weights, firsts, seconds, gradients):
            m += (1 - beta1) * (g - m)
            v += (1 - beta2) * (g * g - v)
            w *= 1 - rate * weight_decay
            w -= (rate / correct1) * m / (np.sqrt(v / correct2) + eps)

    return update


def _blocks(*lists: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
    """The same rows of each list's first array, then the next rows, then those of the second array."""
    for arrays in zip(*lists, strict=True):
        rows = max(1, BLOCK * len(arrays[0]) // arrays[0].size)
        for here in row_blocks(len(arrays[0]), rows):
            yield tuple(array[here] for array in arrays)
