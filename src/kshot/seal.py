"""Files that prove themselves: the sha256 of their own bytes stands inside, taken while that place held zeros."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from kshot.types import Array

BLANK = b"0" * 64
# The seal is one entry of the JSON in the file's header, where quotes are escaped once.
_MARK = b'\\"seal\\": \\"'


def stamped(content: bytes, place: int) -> bytes:
    """The same bytes with their hash at `place`, where zeros stand."""
    return content[:place] + _digest(content, place) + content[place + len(BLANK) :]


def is_proven(content: bytes, place: int) -> bool:
    """Whether the hash at `place` is that of the other bytes."""
    return content[place : place + len(BLANK)] == _digest(content, place)


def seal_tensors(tensors: Mapping[str, Array], about: Mapping[str, Any]) -> bytes:
    """A safetensors file with `about` as JSON in its header and its own hash in that."""
    from safetensors.numpy import save

    text = json.dumps({**about, "seal": BLANK.decode()}, ensure_ascii=False, sort_keys=True)
    content = save({name: np.ascontiguousarray(value) for name, value in tensors.items()}, {"kshot": text})
    return stamped(content, _place(content))


def read_about(content: bytes) -> dict[str, Any]:
    """The JSON in the header, whether or not the file is whole; ValueError where there is none."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    try:
        about = json.loads(header["__metadata__"]["kshot"])
    except (KeyError, TypeError) as error:
        raise ValueError("its header says nothing of kshot") from error
    if not isinstance(about, dict):
        raise ValueError("its header holds no names")
    return about


def unseal_tensors(content: bytes) -> dict[str, Array]:
    """The arrays of a file that `seal_tensors` made; ValueError where one byte of it is not as it was."""
    from safetensors.numpy import load

    place = _place(content)
    if place < 0 or not is_proven(content, place):
        raise ValueError("it was changed after it was written")
    return load(content)


def json_seal(content: Mapping[str, Any]) -> str:
    """A hash of everything that JSON says, but for its own seal."""
    rest = {name: value for name, value in content.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _place(content: bytes) -> int:
    """Where the hash begins; −1 where there is none."""
    end = 8 + int.from_bytes(content[:8], "little")
    found = content.rfind(_MARK, 8, end)
    return found + len(_MARK) if found >= 0 else -1


def _digest(content: bytes, place: int) -> bytes:
    state = hashlib.sha256(content[:place])
    state.update(BLANK)
    state.update(content[place + len(BLANK) :])
    return state.hexdigest().encode()
