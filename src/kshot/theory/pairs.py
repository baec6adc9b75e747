"""All class pairs at once: differences of rows never formed, only their inner products."""

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError
from kshot.types import Array


def pair_indices(n_classes: int) -> tuple[Int[Array, " P"], Int[Array, " P"]]:
    """(i, j) with i < j in the order of `numpy.triu_indices`."""
    if n_classes < 2:
        raise InputError(f"{n_classes} class(es), but a pair needs two.")
    i, j = np.triu_indices(n_classes, k=1)
    return i, j


def pair_products(gram: Float[Array, "C C"]) -> Float[Array, " P"]:
    """(a_i − a_j)·(b_i − b_j) for every pair, from gram = A·Bᵀ."""
    own = np.diag(gram)
    i, j = pair_indices(len(gram))
    return (own[:, None] + own[None, :] - gram - gram.T)[i, j]
