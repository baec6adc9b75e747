"""Inputs of the closed forms: numbers or arrays of them, and inner products of all class pairs."""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float

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


def pair_products(gram: Float[Array, "C C"]) -> Float[Array, " P"]:
    """(a_i − a_j)·(b_i − b_j) of every pair i < j, as `numpy.triu_indices` orders them, from gram = A·Bᵀ."""
    if len(gram) < 2:
        raise InputError(f"{len(gram)} class(es), but a pair needs two.")
    own = np.diag(gram)
    return (own[:, None] + own[None, :] - gram - gram.T)[np.triu_indices(len(gram), k=1)]
