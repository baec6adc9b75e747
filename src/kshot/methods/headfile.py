"""A fitted head in one safetensors file: arrays as tensors, the rest as JSON in the header. No pickle.

The file holds its own hash, so that a damaged byte is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kshot.errors import InputError
from kshot.files import read_about, seal_tensors, unseal_tensors, write_bytes
from kshot.methods import registry
from kshot.methods.base import Classifier, plain_choices, plain_value
from kshot.types import Array, Choice

FORMAT = 3
BESIDE = "beside."
# What the provenance of a picture head calls it.
PICTURES = "pictures"


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
        Anything else to keep as JSON: class names, encoder, …

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> kshot.save_head(kshot.NCM().fit(data.X, data.y), "head.safetensors")
    >>> kshot.load_head("head.safetensors")
    NCM(logit_scale=None)
    """
    head._expects()
    state = {name: value for name, value in vars(head).items() if name.endswith("_")}
    tensors = {name: value for name, value in state.items() if _is_tensor(value)}
    rest = {name: v for name, v in state.items() if name not in tensors and name != "selected_"}
    header = {
        "format": FORMAT,
        "method": method or registry.name_of(head),
        "params": plain_value(head.get_params(), "a parameter"),
        "selected": plain_choices(head.selected_),
        "state": plain_value(rest, "a fitted attribute"),
        "provenance": provenance,
    }
    tensors |= {f"{BESIDE}{name}": value for name, value in (beside or {}).items()}
    write_bytes(Path(path), seal_tensors(tensors, header))


@dataclass(frozen=True)
class HeadFile:
    """The content of a head file, read at once because another process may replace the file."""

    header: dict[str, Any]
    tensors: dict[str, Array]
    path: Path

    @property
    def provenance(self) -> dict[str, Any]:
        """The keyword arguments that were stored with the head."""
        return self.header["provenance"]

    @property
    def beside(self) -> dict[str, Array]:
        """The further arrays that were stored with the head."""
        found = {name: value for name, value in self.tensors.items() if name.startswith(BESIDE)}
        return {name.removeprefix(BESIDE): value for name, value in found.items()}

    def head(self, method: str | None = None) -> Classifier:
        """The head itself; `method` names one that is not registered."""
        name = method or self.header["method"]
        if method is None and name not in registry.names():
            raise InputError(
                f"{self.path} holds a head of '{name}', which is not registered; pass method=... to load it."
            )
        head = registry.create(name, **self.header["params"])
        own = {name: value for name, value in self.tensors.items() if not name.startswith(BESIDE)}
        for attribute, value in {**self.header["state"], **own}.items():
            setattr(head, attribute, value)
        head.classes_ = np.asarray(head.classes_)
        head.selected_ = {key: Choice(**choice) for key, choice in self.header["selected"].items()}
        return head


def load_head(path: Path | str, *, method: str | None = None) -> Classifier:
    """Read a head back.

    Parameters
    ----------
    path : path
        A file that `save_head` wrote.
    method : str
        Only registered methods are built by name; name your own as package.module:Class.

    Examples
    --------
    >>> import kshot
    >>> from kshot.testing import problem
    >>> data = problem()
    >>> kshot.save_head(kshot.NCM().fit(data.X, data.y), "head.safetensors")
    >>> kshot.load_head("head.safetensors")
    NCM(logit_scale=None)
    """
    file = read_head_file(path)
    if file.provenance.get("kind") == PICTURES:
        raise InputError(
            f"{path} is a head of pictures, whose probabilities have a temperature and whose classes have names of "
            "their own. Read it with kshot.PictureHead.load; its `head` is the head alone."
        )
    return file.head(method)


def read_head_file(path: Path | str) -> HeadFile:
    """Read and check a file that `save_head` wrote."""
    from safetensors import SafetensorError

    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no head file at {path}.")
    try:
        content = path.read_bytes()
        header = read_about(content)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a kshot head file ({error}).") from error
    _check_header(header, path)
    try:
        return HeadFile(header, unseal_tensors(content), path)
    except (SafetensorError, ValueError) as error:
        raise InputError(f"{path} is a damaged head file: {error}. Fit and save it again.") from error


def _is_tensor(value: Any) -> bool:
    """Arrays of numbers; class names are words and go into the header."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


def _check_header(header: Any, path: Path) -> None:
    if "format" not in header:
        raise InputError(f"{path} is not a kshot head file (its header names no format).")
    if header["format"] != FORMAT:
        raise InputError(
            f"{path} has head format {header['format']}; this kshot reads format {FORMAT}. Fit and save it again."
        )
    lacks = [key for key in ("method", "params", "selected", "state", "provenance") if key not in header]
    if lacks:
        raise InputError(f"{path} is a damaged head file: its header lacks {', '.join(lacks)}. Fit and save it again.")
