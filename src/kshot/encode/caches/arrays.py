"""Read one array of an npz, npy, torch, safetensors or parquet file; nothing in a file is run."""

import pickle
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kshot.errors import InputError, KshotError, first_line, need
from kshot.solvers.rows import as_numpy
from kshot.types import Array


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
    """The array as the file holds it; every error names the file."""
    path = address.file
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path} is of no known kind; known are {', '.join(READERS)}.")
    try:
        arrays = reader(path)
        key = next(iter(arrays)) if address.key is None and len(arrays) == 1 else address.key
        if key is None or key not in arrays:
            names = ", ".join(map(str, arrays)) or "no array"
            given = "holds several arrays" if key is None else f"has no '{key}'"
            raise InputError(f"{path} {given}; it holds {names}. Give FILE:KEY with one of them.")
        found = arrays[key]
        return np.asarray(found() if callable(found) else found)
    except KshotError:
        raise
    except Exception as error:  # readers of damaged files raise whatever they stumble over
        raise InputError(f"{path} cannot be read ({first_line(error)}).") from None


def list_arrays(path: Path) -> str:
    """The names of a file's arrays with shape and kind, for a message."""
    reader = READERS.get(path.suffix.lower())
    names = list(reader(path)) if reader else []
    arrays = {name: read_array(Address(path, name)) for name in names}
    return ", ".join(f"{name} ({' × '.join(map(str, a.shape)) or 'one'} {a.dtype})" for name, a in arrays.items())


def _npz(path: Path) -> Mapping[str, Any]:
    def read(name: str) -> Array:
        with np.load(path, allow_pickle=False) as file:
            return file[name]

    with np.load(path, allow_pickle=False) as file:
        return {name: partial(read, name) for name in file.files}


def _npy(path: Path) -> Mapping[str, Any]:
    return {"": np.load(path, allow_pickle=False, mmap_mode="r")}


def _torch(path: Path) -> Mapping[str, Any]:
    """Tensors by name; a file that is one tensor has the name ''."""
    torch = need("torch", "encode")
    if zipfile.is_zipfile(path):
        # Torch itself notices neither changed bytes nor a compressed archive, which may unpack to any size.
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise InputError(f"{path} is compressed, which torch never does.")
            if (damaged := archive.testzip()) is not None:
                raise InputError(f"{path} is damaged: {damaged} was changed after it was written.")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError(f"{path} holds more than tensors; it was refused, and nothing in it was run.") from None
    tensors = content if isinstance(content, dict) else {"": content}
    if not tensors or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise InputError(f"{path} holds no tensor and no dictionary of tensors.")
    return {str(name): as_numpy(tensor, str(name)) for name, tensor in tensors.items()}


def _safetensors(path: Path) -> Mapping[str, Any]:
    from safetensors import safe_open

    def read(name: str) -> Array:
        with safe_open(path, "numpy") as file:
            if file.get_slice(name).get_dtype() != "BF16":
                return file.get_tensor(name)
        need("torch", "encode")
        with safe_open(path, "pt") as file:
            return as_numpy(file.get_tensor(name), name)

    with safe_open(path, "numpy") as file:
        return {name: partial(read, name) for name in file.keys()}  # noqa: SIM118, it is no dict


def _parquet(path: Path) -> Mapping[str, Any]:
    import pyarrow.parquet as pq

    return {name: partial(_column, path, name) for name in pq.read_schema(path).names}


def _column(path: Path, name: str) -> Array:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        column = file.read(columns=[name]).column(name)
    if column.null_count:
        raise ValueError(f"column {name} has {column.null_count} missing values")
    values = column.to_numpy()
    if values.dtype != object:
        return values
    return np.array(values, str) if isinstance(values[0], str) else np.stack(values)


READERS: dict[str, Callable[[Path], Mapping[str, Any]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".pt": _torch,
    ".pth": _torch,
    ".safetensors": _safetensors,
    ".parquet": _parquet,
}
