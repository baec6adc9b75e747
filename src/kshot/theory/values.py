"""Inputs of the closed forms: numbers or arrays of them, and inner products of all class pairs."""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError
from kshot.types import Array

Values: TypeAlias = float | Float[Array, "..."]


def require_shots(shots: int) -> None:
    if shots < 2:
        raise InputError(
            f"shots = {shots}, but a within-class scatter needs at least 2 shots per class. "
            "At one shot the James–Stein ratio does not exist."
        )


def require_positive(value: Values, what: str) -> None:
    if not np.all(np.asarray(value) > 0):
        raise InputError(f"{what} must be positive, not {value}. Without noise there is no law to compute.")


def pair_indices(n_classes: int) -> tuple[Int[Array, " P"], Int[Array, " P"]]:
    """(i, j) with i < j in the order of `numpy.triu_indices`."""
    if n_classes < 2:
        raise InputError(f"{n_classes} class(es), but a pair needs two.")
    i, j = np.triu_indices(n_classes, k=1)
    return i, j


def pair_products(gram: Float[Array, "C C"]) -> Float[Array, " P"]:
    """(a_i − a_j)·(b_i − b_j) for every pair from gram = A·Bᵀ, without forming the differences."""
    own = np.diag(gram)
    i, j = pair_indices(len(gram))
    return (own[:, None] + own[None, :] - gram - gram.T)[i, j]
