"""What a closed form takes: one number or an array of them, elementwise."""

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
