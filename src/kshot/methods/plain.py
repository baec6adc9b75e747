"""What a method leaves behind, as values that JSON can keep: in records and in head files."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from kshot.errors import InputError
from kshot.types import Choice


def plain_value(value: Any, what: str) -> Any:
    """The same value with numpy's numbers and arrays as Python's numbers and lists; `what` names it in the error."""
    try:
        return json.loads(json.dumps(value, default=_unpacked))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} cannot be kept ({error}). Use numbers, text, None, and arrays, lists or dicts of them."
        ) from error


def plain_choices(selected: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A method's `selected_`: for each name its value and the evidence that it was chosen from."""
    for name, choice in selected.items():
        if not isinstance(choice, Choice):
            raise InputError(
                f"selected_['{name}'] is {choice!r}, not a Choice. Write Choice(value, from_) of kshot.types."
            )
    pairs = {name: {"value": choice.value, "from_": choice.from_} for name, choice in selected.items()}
    return plain_value(pairs, "selected_")


def _unpacked(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")
