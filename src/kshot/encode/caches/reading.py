"""Read and check features, labels, text and class names of a cache; errors name the file."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from kshot.data.gate import NORM_TOLERANCE
from kshot.encode.caches.arrays import Address, read_array
from kshot.encode.caches.layouts import PartFiles
from kshot.encode.sources.coop import is_split, read_split
from kshot.encode.sources.source import read_json, text_lines
from kshot.errors import InputError
from kshot.solvers.labels import encode_labels, read_labels
from kshot.solvers.rows import row_blocks, unit_rows
from kshot.types import Array


class Rows(NamedTuple):
    """Unit rows (N, d) with labels (N,) and ids; `notes` say what was changed."""

    X: Array
    y: Array
    ids: list[str]
    notes: list[str]


def read_rows(part: str, files: PartFiles, names: Sequence[str] | None) -> Rows:
    """Read one part; labels that are words become their places among the class names."""
    y = _labels(files.labels, names)
    X, turned = _oriented(files.features, len(y))
    X, renormalised = _unit(X, files.features)
    if files.ids is None:
        ids = [f"{part}/{number:06d}" for number in range(len(y))]
    else:
        ids = [str(name) for name in read_array(files.ids).reshape(-1)]
        if len(ids) != len(y):
            raise InputError(f"{files.ids} has {len(ids)} ids for {len(y)} labels in {files.labels}.")
    return Rows(X, y, ids, turned + renormalised)


def read_text(address: Address, dim: int, like: Address) -> tuple[Float[Array, "C d"], list[str]]:
    """Prototypes with one row for each class, transposed if necessary; of C × prompts × d the mean over prompts."""
    T = read_array(address)
    if T.ndim == 3 and T.shape[2] == dim:
        each = unit_rows(T.reshape(-1, dim), str(address), np.dtype(np.float32)).reshape(T.shape)
        return unit_rows(each.mean(axis=1), str(address)), [f"{address.file.name}: means over {T.shape[1]} prompts"]
    T = _matrix(address)
    if dim not in T.shape:
        raise InputError(f"{address} is {_shape(T)}, but {like} has {dim} dimensions: another backbone's text.")
    turned = T.shape[1] != dim or _lie_in_columns(T)
    T, notes = _unit(T.T if turned else T, address)
    return T, ([f"{address.file.name} is {dim} × C; its columns became rows"] if turned else []) + notes


def read_names(address: Address) -> tuple[str, ...]:
    """Class names in the order of the labels: lines of a text file, a JSON list, a CoOp split, or an array."""
    path = address.file
    if path.suffix == ".json":
        content = read_json(path)
        if is_split(content):
            return read_split(path).classes
        if not (isinstance(content, list) and all(isinstance(name, str) for name in content)):
            raise InputError(f"{path} must hold a list of class names, or be a CoOp split.")
        names = tuple(content)
    elif path.suffix == ".txt":
        names = tuple(line.strip() for line in text_lines(path))
    else:
        array = read_array(address)
        if array.ndim != 1 or array.dtype.kind != "U":
            raise InputError(f"{address} is {_shape(array)} of {array.dtype}; class names are a list of words.")
        names = tuple(map(str, array))
    if not names or any(not name.strip() or "\n" in name for name in names):
        raise InputError(f"{address} names no class, or an empty one.")
    return _numbered(names, address)


def _numbered(names: Sequence[str], address: Address) -> tuple[str, ...]:
    """Number the repetitions of a name: ImageNet has two classes called missile and two called sunglasses."""
    counts: Counter[str] = Counter()
    numbered = []
    for name in names:
        counts[name] += 1
        numbered.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    if len(set(numbered)) < len(numbered):
        raise InputError(f"{address} has a class name twice, and also with a number in brackets. Rename one.")
    return tuple(numbered)


def without_numbers(classes: Sequence[str]) -> tuple[str, ...]:
    """The names before `_numbered`: what prompts say of two classes with one name."""
    bases = ((name, name.rpartition(" (")[0]) for name in classes)
    return tuple(base if name.endswith(")") and base in classes else name for name, base in bases)


def names_in_labels(labels: Sequence[Address]) -> tuple[str, ...] | None:
    """The different labels, sorted, where they are words."""
    arrays = [read_array(address) for address in labels]
    words = {str(word) for array in arrays if array.dtype.kind == "U" for word in np.unique(array)}
    return tuple(sorted(words)) or None


def _labels(address: Address, names: Sequence[str] | None) -> Int[Array, " N"]:
    array = read_array(address)
    if array.ndim == 2 and 1 not in array.shape:
        if not np.isin(array, (0, 1)).all() or not (np.count_nonzero(array, axis=1) == 1).all():
            raise InputError(f"{address} is {_shape(array)} but not one-hot; give labels or one-hot rows.")
        return array.argmax(axis=1)
    y = read_labels(str(address), array.reshape(-1), array.size)
    if y.dtype.kind == "U":
        shared = [name for name in sorted(set(y.tolist())) if f"{name} (2)" in (names or ())]
        if shared:
            raise InputError(f"{address} has the label '{shared[0]}', which two classes share. Give labels as numbers.")
        return encode_labels(str(address), y, np.array(names or ()))
    if y.dtype.kind not in "iu":
        raise InputError(f"{address} has labels of {y.dtype}; give whole numbers from 0, or words.")
    if y.min() < 0 or y.max() > np.iinfo(np.int32).max:
        raise InputError(f"{address} has labels {y.min()}..{y.max()}; they count from 0.")
    return y.astype(np.int64)


def _oriented(address: Address, rows: int) -> tuple[Array, list[str]]:
    """Features with one row for each label, transposed if necessary."""
    X = _matrix(address)
    if len(X) == rows and not _lie_in_columns(X):
        return X, []
    if X.shape[1] == rows:
        return X.T, [f"{address.file.name} is d × N ({_shape(X)}); its columns became rows"]
    raise InputError(f"{address} is {_shape(X)}, but there are {rows} labels for it.")


def _lie_in_columns(X: Array) -> bool:
    """Whether the columns of a square matrix are its features: their lengths differ less than those of dimensions."""
    if X.shape[0] != X.shape[1]:
        return False
    rows, columns = (np.linalg.norm(X.astype(np.float64), axis=axis) for axis in (1, 0))
    return bool(columns.std() * rows.mean() < rows.std() * columns.mean())


def _matrix(address: Address) -> Array:
    X = read_array(address)
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind != "f":
        raise InputError(f"{address} is {_shape(X)} of {X.dtype}; features are a matrix of floating-point numbers.")
    return X


def _unit(X: Array, address: Address) -> tuple[Float[Array, "N d"], list[str]]:
    """Normalise rows that are not of unit length; others keep their bytes if they are float16 or float32."""
    kept = np.empty(X.shape, X.dtype if X.dtype in (np.float16, np.float32) else np.float32)
    low, high = np.inf, 0.0
    for rows in row_blocks(len(X)):
        block = np.asarray(X[rows])
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.linalg.norm(block.astype(np.float64), axis=1)
        if not np.isfinite(norms).all() or not norms.all():
            bad = rows.start + int(np.flatnonzero(~np.isfinite(norms) | (norms == 0))[0])
            raise InputError(f"{address} has a row that is zero or not finite: row {bad}. Remove or encode it again.")
        low, high = min(low, norms.min()), max(high, norms.max())
        off = np.abs(norms - 1) > NORM_TOLERANCE
        kept[rows][~off] = block[~off]
        if off.any():
            kept[rows][off] = unit_rows(block[off], str(address), np.dtype(np.float32))
    if low >= 1 - NORM_TOLERANCE and high <= 1 + NORM_TOLERANCE:
        return kept, []
    return kept, [f"rows of {address.file.name} had lengths {low:.3g} to {high:.3g}; they were renormalised"]


def _shape(X: Array) -> str:
    return " × ".join(map(str, X.shape)) or "a single value"
