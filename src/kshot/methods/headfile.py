"""A fitted head in one safetensors file: arrays as tensors, the rest as JSON in the header. No pickle."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kshot.errors import InputError
from kshot.files import write_bytes
from kshot.methods import registry
from kshot.methods.base import Classifier
from kshot.methods.plain import plain_choices, plain_value
from kshot.types import Array, Choice

FORMAT = 1
BESIDE = "beside."


def save_head(
    head: Classifier,
    path: Path | str,
    *,
    method: str | None = None,
    beside: Mapping[str, Array] | None = None,
    **provenance: Any,
) -> None:
    """Write a fitted head to one safetensors file.

    Parameters
    ----------
    head : fitted head
    path : path
    method : str
        The name to build it by, for a head that is not registered: package.module:Class.
    beside : arrays by name
        Further arrays to keep in the file.
    **provenance
        What else is to be known of it (class names, encoder, …), kept as JSON.
    """
    from safetensors.numpy import save

    head._expects()
    state = {name: value for name, value in vars(head).items() if name.endswith("_")}
    tensors = {name: np.ascontiguousarray(v) for name, v in state.items() if _is_tensor(v)}
    rest = {name: v for name, v in state.items() if name not in tensors and name != "selected_"}
    header = {
        "format": FORMAT,
        "method": method or registry.name_of(head),
        "params": plain_value(head.get_params(), "a parameter"),
        "selected": plain_choices(head.selected_),
        "state": plain_value(rest, "a fitted attribute"),
        "provenance": provenance,
    }
    tensors |= {f"{BESIDE}{name}": np.ascontiguousarray(value) for name, value in (beside or {}).items()}
    metadata = {"kshot": json.dumps(header, ensure_ascii=False, sort_keys=True)}
    write_bytes(Path(path), save(tensors, metadata))


def load_head(path: Path | str, *, method: str | None = None) -> Classifier:
    """Read a head back.

    Parameters
    ----------
    path : path
        What `save_head` wrote.
    method : str
        Only registered methods are built by name; name your own as package.module:Class.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no head file at {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["kshot"])
            own = [name for name in file.keys() if not name.startswith(BESIDE)]  # noqa: SIM118
            tensors = {name: file.get_tensor(name) for name in own}
    except (SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"{path} is not a kshot head file ({error}).") from error
    _check_header(header, path)
    name = method or header["method"]
    if method is None and name not in registry.names():
        raise InputError(
            f"{path} holds a head of '{name}', which is not registered; pass method=... to load it."
        )
    head = registry.create(name, **header["params"])
    for attribute, value in {**header["state"], **tensors}.items():
        setattr(head, attribute, value)
    head.classes_ = np.asarray(head.classes_)
    head.selected_ = {key: Choice(**choice) for key, choice in header["selected"].items()}
    return head


def _is_tensor(value: Any) -> bool:
    """Arrays of numbers; class names are words and go into the header."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


def _check_header(header: Any, path: Path) -> None:
    if not isinstance(header, dict) or "format" not in header:
        raise InputError(f"{path} is not a kshot head file (its header names no format).")
    if header["format"] != FORMAT:
        raise InputError(f"{path} has head format {header['format']}; this kshot reads format {FORMAT}.")
    lacks = [key for key in ("method", "params", "selected", "state") if key not in header]
    if lacks:
        raise InputError(
            f"{path} is a damaged head file: its header lacks {', '.join(lacks)}. Fit and save it again."
        )


def head_provenance(path: Path | str) -> dict[str, Any]:
    """What was stored beside the head."""
    from safetensors import safe_open

    with safe_open(Path(path), framework="numpy") as file:
        return json.loads((file.metadata() or {})["kshot"])["provenance"]


def arrays_beside(path: Path | str) -> dict[str, Array]:
    """The further arrays that were stored with the head."""
    from safetensors import safe_open

    with safe_open(Path(path), framework="numpy") as file:
        names = [name for name in file.keys() if name.startswith(BESIDE)]  # noqa: SIM118
        return {name.removeprefix(BESIDE): file.get_tensor(name) for name in names}
