"""Tensors of a torch file, read without torch and without running anything that the file asks for.

A .pt file is a zip with a pickle that says how tensors lie in the raw bytes beside it. The pickle is decoded
instruction by instruction: containers, numbers and the three constructors of tensors are understood, and anything
else refuses the file. Nothing in it can name a function of ours or of Python's.
"""

import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kshot.errors import InputError
from kshot.types import Array

# Says where tensors lie; the bytes of tensors are not in it.
LARGEST_INDEX = 1_000_000
_STORAGES = {
    "torch HalfStorage": "<f2",
    "torch FloatStorage": "<f4",
    "torch DoubleStorage": "<f8",
    "torch BFloat16Storage": "bfloat16",
    "torch LongStorage": "<i8",
    "torch IntStorage": "<i4",
    "torch ShortStorage": "<i2",
    "torch CharStorage": "i1",
    "torch ByteStorage": "u1",
    "torch BoolStorage": "?",
}
_SKIPPED = {"PROTO", "FRAME", "STOP"}
_NUMBERS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


class _NotTensors(ValueError):
    """The file holds or asks for something else than tensors."""


@dataclass(frozen=True, slots=True)
class _Name:
    """What the file calls a function or a type; only ever compared with the names that are understood."""

    text: str


def read_torch(path: Path) -> dict[str, Array]:
    """Tensors by name; a file that is one tensor has the name ''."""
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"{path} is not a whole torch file: it is cut off, or of torch before 1.6. Load it where it comes from "
            "and save it again with torch.save."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            content = _Reader(archive).result()
    except _NotTensors as error:
        raise InputError(f"{path} {error}; it was not opened further, and nothing in it was run.") from None
    if isinstance(content, np.ndarray):
        return {"": content}
    if isinstance(content, dict) and content and all(isinstance(v, np.ndarray) for v in content.values()):
        return {str(name): value for name, value in content.items()}
    raise InputError(f"{path} holds no tensor and no dictionary of tensors.")


class _Reader:
    """A stack machine over the few instructions that tensors need."""

    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive
        index = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
        if index is None:
            raise _NotTensors("is a zip without torch's data.pkl")
        self.prefix = index.removesuffix("data.pkl")
        if self._member("byteorder", b"little").strip() != b"little":
            raise _NotTensors("was written on a big-endian machine")
        self.index = self._member("data.pkl")
        if len(self.index) > LARGEST_INDEX:
            raise _NotTensors("has an index too large for a few tensors")
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.calls: dict[str, Callable[..., Any]] = {
            "collections OrderedDict": dict,
            "torch._utils _rebuild_tensor_v2": _rebuild_tensor,
            "torch._utils _rebuild_parameter": lambda tensor, *unused: tensor,
        }

    def result(self) -> Any:
        for opcode, argument, _ in pickletools.genops(self.index):
            self._step(opcode.name, argument)
        return self.stack.pop()

    def _step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _SKIPPED:
            return
        if name in _NUMBERS:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("EMPTY_DICT", "EMPTY_LIST"):
            stack.append({} if name == "EMPTY_DICT" else [])
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "TUPLE":
            stack.append(tuple(self._since_mark()))
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in ("SETITEM", "SETITEMS"):
            flat = self._since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(zip(flat[::2], flat[1::2], strict=True))
        elif name == "GLOBAL":
            if argument not in self.calls and argument not in _STORAGES:
                raise _NotTensors(f"asks for {argument.replace(' ', '.')}, which is no tensor")
            stack.append(_Name(argument))
        elif name == "BINPERSID":
            stack.append(self._storage(*stack.pop()))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(self.calls[stack.pop().text](*arguments))
        else:
            raise _NotTensors(f"uses the pickle instruction {name}, which tensors do not need")

    def _since_mark(self) -> list[Any]:
        # By identity: arrays on the stack do not compare to one truth value.
        start = max(place for place, value in enumerate(self.stack) if value is _MARK)
        taken = self.stack[start + 1 :]
        del self.stack[start:]
        return taken

    def _storage(self, kind: str, dtype: _Name, key: str, device: str, numel: int) -> Array:
        raw = self._member(f"data/{key}")
        wanted = _STORAGES[dtype.text]
        if wanted == "bfloat16":
            return from_bfloat16(np.frombuffer(raw, "<u2", numel))
        return np.frombuffer(raw, wanted, numel)

    def _member(self, name: str, absent: bytes | None = None) -> bytes:
        try:
            member = self.archive.getinfo(self.prefix + name)
        except KeyError:
            if absent is not None:
                return absent
            raise
        if member.compress_type != zipfile.ZIP_STORED:
            raise _NotTensors("is compressed, which torch never does")
        return self.archive.read(member)


def _rebuild_tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *unused: Any) -> Array:
    """A strided view, never outside its storage."""
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    whole = all(type(n) is int and n >= 0 for n in (offset, *size, *stride))
    if not whole or (0 not in size and last >= len(storage)):
        raise _NotTensors("holds a tensor that reaches outside its bytes")
    if 0 in size:
        return np.empty(size, storage.dtype)
    steps = tuple(step * storage.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps, writeable=False)


def from_bfloat16(bits: Array) -> Array:
    """float32 values of bfloat16 numbers, which numpy lacks: the upper half of their bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
