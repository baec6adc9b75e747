"""Torch files made by hand: a zip with a pickle and raw bytes beside it."""

import pickle
import zipfile
from pathlib import Path

import numpy as np

STORAGE = {"float16": "HalfStorage", "float32": "FloatStorage", "int64": "LongStorage", "uint16": "BFloat16Storage"}


def save(path: Path, X: np.ndarray, size=None, stride=None, offset=0, numel=None, **changes) -> None:
    """What torch.save writes for one tensor; every number in it can be forged."""
    size = X.shape if size is None else size
    stride = tuple(s // X.itemsize for s in X.strides) if stride is None else stride
    index = _index(STORAGE[str(X.dtype)], X.size if numel is None else numel, offset, size, stride)
    write(path, index, {"data/0": X.tobytes(), **changes.pop("members", {})}, **changes)


def write(path: Path, index: bytes, members: dict, compression=zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("cache/data.pkl", index)
        for name, content in {"version": b"3\n", "byteorder": b"little", **members}.items():
            archive.writestr(f"cache/{name}", content)


def _index(storage: str, numel: int, offset: int, size, stride) -> bytes:
    """Protocol 2, instruction by instruction, as torch writes it."""
    number = _number
    sizes, strides = (b"(" + b"".join(map(number, values)) + b"t" for values in (size, stride))
    where = (
        b"(" + _word("storage") + f"ctorch\n{storage}\n".encode() + _word("0") + _word("cpu") + number(numel) + b"tQ"
    )
    hooks = b"ccollections\nOrderedDict\n)R"
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
        + where
        + number(offset)
        + sizes
        + strides
        + b"\x89"
        + hooks
        + b"tR."
    )


def _number(value: int) -> bytes:
    return pickle.BININT + int(value).to_bytes(4, "little", signed=True)


def _word(text: str) -> bytes:
    return pickle.BINUNICODE + len(text).to_bytes(4, "little") + text.encode()
