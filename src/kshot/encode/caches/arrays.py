"""One array out of a file that somebody has: npz, npy, torch, safetensors or parquet."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from kshot.encode.caches.torchfile import from_bfloat16, read_torch
from kshot.errors import InputError
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from safetensors import safe_open

Opened: TypeAlias = AbstractContextManager[Mapping[str, Array]]

# What the readers raise on a file that is cut off, forged or no such file at all.
_BROKEN = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
)


class Address(NamedTuple):
    """An array: its file, and its name there where the file holds several."""

    file: Path
    key: str | None = None

    def __str__(self) -> str:
        return str(self.file) if self.key is None else f"{self.file}:{self.key}"


def find_address(text: str, source: Path, last: Path | None = None) -> Address:
    """FILE, FILE:KEY, or a KEY of the last file named; files are looked for in the source folder, then here."""
    folder = source if source.is_dir() else source.parent
    file, colon, key = text.rpartition(":")
    for name, inside in ((text, None), *([(file, key)] if colon else [])):
        for path in (folder / name, Path(name)):
            if path.is_file():
                return Address(path, inside)
    if last is None:
        raise InputError(f"there is no file {text} in {folder} or here. Give FILE, or FILE:KEY.")
    return Address(last, text)


def read_array(address: Address) -> Array:
    """The array, as it lies in the file; every fault is a sentence that names the file."""
    path = address.file
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path} is of no known kind; known are {', '.join(_READERS)}.")
    try:
        with reader(path) as arrays:
            key = next(iter(arrays)) if address.key is None and len(arrays) == 1 else address.key
            if key is None or key not in arrays:
                raise InputError(_which(path, address.key, arrays))
            return np.asarray(arrays[key])
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path} asks for more memory than there is.") from None
    except _BROKEN as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read ({reason}).") from None


def _which(path: Path, key: str | None, arrays: Mapping[str, object]) -> str:
    names = ", ".join(map(str, arrays)) or "no array"
    given = f"has no '{key}'" if key is not None else "holds several arrays"
    return f"{path} {given}; it holds {names}. Give FILE:KEY with one of them."


def _npz(path: Path) -> Opened:
    return np.load(path, allow_pickle=False)


def _npy(path: Path) -> Opened:
    return nullcontext({"": np.load(path, allow_pickle=False, mmap_mode="r")})


@contextmanager
def _safetensors(path: Path) -> Iterator[Mapping[str, Array]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            yield _Tensors(path, file)
    except SafetensorError as error:
        raise ValueError(str(error)) from error


class _Tensors(Mapping):
    """Tensors of a safetensors file, read when they are asked for."""

    def __init__(self, path: Path, file: "safe_open"):
        self.path, self.file, self.names = path, file, list(file.keys())

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Array:
        if self.file.get_slice(name).get_dtype() != "BF16":
            return self.file.get_tensor(name)
        from safetensors import deserialize

        # The library gives numpy, which has no bfloat16, its bytes only.
        found = dict(deserialize(self.path.read_bytes()))[name]
        return from_bfloat16(np.frombuffer(found["data"], "<u2")).reshape(found["shape"])


@contextmanager
def _parquet(path: Path) -> Iterator[Mapping[str, Array]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        yield _Columns(file)


class _Columns(Mapping):
    """Columns of a parquet file, read when they are asked for."""

    def __init__(self, file: "pq.ParquetFile"):
        self.file, self.names = file, list(file.schema_arrow.names)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Array:
        import pyarrow.types as types

        column = self.file.read(columns=[name]).column(name).combine_chunks()
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            raise ValueError(f"column {name} has {column.null_count} missing values")
        if types.is_list(column.type) or types.is_large_list(column.type):
            lengths = np.unique(column.value_lengths().to_numpy())
            if len(lengths) != 1:
                raise ValueError(f"the vectors of column {name} have {len(lengths)} different lengths")
            width = int(lengths[0])
        elif types.is_fixed_size_list(column.type):
            width = column.type.list_size
        elif types.is_string(column.type) or types.is_large_string(column.type):
            return np.array(column.to_pylist(), str)
        else:
            return column.to_numpy(zero_copy_only=False)
        flat = column.flatten()
        if flat.null_count or not (types.is_floating(flat.type) or types.is_integer(flat.type)):
            raise ValueError(f"column {name} holds {column.type} with missing values or no numbers")
        return flat.to_numpy(zero_copy_only=False).reshape(len(column), width)


_READERS: dict[str, Callable[[Path], Opened]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".pt": lambda path: nullcontext(read_torch(path)),
    ".pth": lambda path: nullcontext(read_torch(path)),
    ".safetensors": _safetensors,
    ".parquet": _parquet,
}
