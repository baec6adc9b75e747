"""In-place update rules for a list of weights; they remember what they need between calls."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from kshot.solvers.rows import row_blocks
from kshot.types import Array

Update: TypeAlias = Callable[[Sequence[Array], float], None]

BETA1, BETA2 = 0.9, 0.999
# Numbers per block: Adam passes over its arrays a dozen times, and temporaries this small stay in the cache
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
