"""Rows of features: checks, unit length, class means, their error, and the ratio of shrinkage that follows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import InputError
from kshot.types import Array

# Enough rows for a product at full speed, few enough that their scores of 1,000 classes stay near the core.
BLOCK_ROWS = 2048


def row_blocks(n: int, most: int | None = None) -> Iterator[slice]:
    """0 … n in slices of at most so many rows, BLOCK_ROWS unless given."""
    step = most or BLOCK_ROWS
    for low in range(0, n, step):
        yield slice(low, min(low + step, n))


def frozen(array: Array) -> Array:
    """A copy in read-only memory; a flag alone could be set back."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def read_only(array: Array) -> Array:
    """The same memory, read-only for good; whoever made the array keeps no other reference to it."""
    return np.frombuffer(memoryview(array.data).toreadonly(), array.dtype).reshape(array.shape)


def working_dtype(X: Array) -> np.dtype:
    """float64 stays, everything else becomes float32."""
    return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)


def as_numpy(given: Any, what: str) -> Any:
    """An array of the processor's memory, whoever made it and wherever it lies; None stays None."""
    try:
        return None if given is None else _as_numpy(given)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InputError(f"{what} cannot be read as an array: {error}") from error


def _as_numpy(given: Any) -> Array:
    if hasattr(given, "detach"):
        tensor = given.detach().cpu()
        # numpy has no bfloat16.
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray):
        try:
            return np.from_dlpack(given, device="cpu")
        except (BufferError, TypeError, RuntimeError, ValueError):
            if not hasattr(given, "__array__"):
                raise
    if np.ma.is_masked(given):
        raise ValueError("some entries are masked; leave these rows out, or fill them")
    return np.asarray(given)


def unit_rows(X: Any, what: str, dtype: np.dtype | None = None, first: int = 0) -> Float[Array, "N d"]:
    """Rows scaled to length one in the working dtype; `what` names them in the error, `first` is the number of the
    first row."""
    X = np.asarray(as_numpy(X, what))
    if X.ndim != 2:
        raise InputError(
            f"{what} must have two dimensions (rows, features), not shape {X.shape}. Reshape your data: "
            "X.reshape(1, -1) makes one row; sparse input is not supported, X.toarray() makes it dense."
        )
    if not X.shape[1]:
        raise InputError(f"{what} has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.dtype.kind == "c":
        raise InputError(f"{what} holds complex numbers. Complex data not supported; give real features.")
    given, limits = X, np.finfo(dtype or working_dtype(X))
    with np.errstate(over="ignore"):
        X = given.astype(limits.dtype, copy=False)
        squares = np.einsum("ij,ij->i", X, X)
    # Squares beyond the range of the dtype, or so small that they lose digits; NaN is neither.
    extreme = ~((squares > limits.tiny / limits.eps) & (squares <= limits.max))
    if extreme.any():
        X = X.copy()
        X[extreme] = _by_largest(given[extreme].astype(np.float64))
        squares[extreme] = np.einsum("ij,ij->i", X[extreme], X[extreme])
    norms = np.sqrt(squares)
    finite = np.isfinite(norms)
    if not finite.all():
        raise InputError(f"{what} has NaN or infinite values in {_rows(~finite, first)}. Remove or re-encode them.")
    if not norms.all():
        raise InputError(f"{what} has zero vectors in {_rows(norms == 0, first)}. Remove or re-encode them.")
    return X / norms[:, None]


def _by_largest(rows: Float[Array, "N d"]) -> Float[Array, "N d"]:
    """Rows divided by their largest number; those that are zero, infinite or NaN as they are."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return rows / np.where((largest > 0) & np.isfinite(largest), largest, 1)


def class_counts(y: Int[Array, " N"], n_classes: int) -> Int[Array, " C"]:
    return np.bincount(y, minlength=n_classes)


def class_sums(X: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int) -> Float[Array, "C d"]:
    """Shot by shot: all classes' first rows, then all second ones (np.add.reduceat is five times slower)."""
    order = np.argsort(y, kind="stable")
    counts = class_counts(y, n_classes)
    first = np.cumsum(counts) - counts
    sums = np.zeros((n_classes, X.shape[1]), X.dtype)
    for shot in range(int(counts.max(initial=0))):
        has = np.flatnonzero(counts > shot)
        sums[has] += X[order[first[has] + shot]]
    return sums


def class_means(X: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int) -> Float[Array, "C d"]:
    """Plain means of each class's rows, not re-normalised; every class needs a row."""
    counts = class_counts(y, n_classes).astype(X.dtype)
    return class_sums(X, y, n_classes) / counts[:, None]


def shot_numbers(y: Int[Array, " N"]) -> Int[Array, " N"]:
    """0 for the first row of each class, 1 for the second, and so on in the order of the rows."""
    order = np.argsort(y, kind="stable")
    counts = np.bincount(y)
    numbers = np.empty(len(y), np.int64)
    numbers[order] = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers


def accuracy(scores: Float[Array, "n C"], y: Int[Array, " n"]) -> float:
    """The share of rows whose largest score is at their label."""
    return float(np.mean(scores.argmax(axis=1) == y))


def squared_norms(X: Float[Array, "*rows d"]) -> Float[Array, "*rows"]:
    return np.einsum("...i,...i->...", X, X)


def _rows(bad: Array, first: int) -> str:
    rows = np.flatnonzero(bad) + first
    shown = ", ".join(map(str, rows[:5]))
    return f"{len(rows)} row(s): {shown}{' …' if len(rows) > 5 else ''}"


def unit_prototypes(prototypes: Float[Array, "C d"], smallest: float | None = None) -> Float[Array, "C d"]:
    """Prototypes scaled to length one; those no longer than `smallest` (the dtype's eps) count as zero and are kept."""
    norms = np.sqrt(squared_norms(prototypes))[:, None]
    least = np.finfo(prototypes.dtype).eps if smallest is None else smallest
    return prototypes / np.where(norms > least, norms, 1)


def span_basis(*rows: Float[Array, "_ d"]) -> Float[Array, "d r"] | None:
    """An orthonormal basis that holds all rows, or None where it is no smaller than d.

    Momentum SGD and ridge penalties commute with rotations, so training on X·Q and turning the weights back by
    Qᵀ is exact.
    """
    if sum(map(len, rows)) >= rows[0].shape[1]:
        return None
    return np.linalg.qr(np.concatenate(rows).T)[0]


def mean_variances(X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"]) -> Float[Array, " C"]:
    """v_c = sum_i |x_i − mu_c|² / (K(K−1)), the estimated squared error of a class mean (needs K ≥ 2)."""
    counts = class_counts(y, len(means)).astype(X.dtype)
    distances = np.empty(len(X), X.dtype)
    for here in row_blocks(len(X)):
        distances[here] = squared_norms(X[here] - means[y[here]])
    scatter = class_sums(distances[:, None], y, len(means))[:, 0]
    return scatter / (counts * (counts - 1))


def james_stein_ratio(v: Float[Array, " C"], d2: Float[Array, " C"]) -> Float[Array, " C"]:
    """(1 − v/d²)₊ (paper, Prop. 2); 0 where text and mean coincide."""
    return np.where(d2 > 0, np.clip(1 - v / np.where(d2 > 0, d2, 1), 0, None), 0).astype(v.dtype)


def optimal_ratio(g2: Float[Array, " C"], v: Float[Array, " C"]) -> Float[Array, " C"]:
    """g²/(g² + v), the ratio of least squared error (paper, Prop. 1); 0 where both vanish."""
    total = g2 + v
    return np.where(total > 0, g2 / np.where(total > 0, total, 1), 0).astype(g2.dtype)


def common_offset(means: Float[Array, "C d"], text: Float[Array, "C d"]) -> Float[Array, " d"]:
    """The class-independent part of text minus image, Delta of the paper's decomposition."""
    return (text - means).mean(axis=0)


def class_independent_share(means: Float[Array, "C d"], text: Float[Array, "C d"]) -> float:
    """1 − mean|delta_c|²/mean|t_c − mu_c|²: how much of the text–image distance all classes share; NaN of none."""
    difference = text - means
    residue = difference - difference.mean(axis=0)
    distance = squared_norms(difference).mean()
    return float(1 - squared_norms(residue).mean() / distance) if distance > 0 else np.nan


def correct_for_shots(lam: float, shots: int | float) -> float:
    """Carry a ratio fitted with K−1 shots to K: odds × K/(K−1); a ratio of 1 stays 1."""
    odds = lam * shots / (shots - 1)
    return odds / (odds + (1 - lam))


def population_moments(
    X: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int
) -> tuple[Float[Array, "C d"], Float[Array, " C"]]:
    """Class means and traces of the class covariances, from data outside the support."""
    means = class_means(X, y, n_classes)
    counts = class_counts(y, n_classes).astype(X.dtype)
    return means, mean_variances(X, y, means) * counts
