"""Labels of any kind (names, numbers, booleans) become the row numbers 0..C−1 of the text."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from kshot.errors import InputError
from kshot.solvers.rows import as_numpy
from kshot.types import Array

NAME_ROWS = "Name the rows of text with classes=[...], in their order."


def read_labels(what: str, y: Any, rows: int) -> Shaped[Array, " N"]:
    """One label per row; whole numbers that are stored as floats become integers."""
    if y is None:
        raise InputError(f"{what} requires y to be passed, but the target y is None. Give one label per row.")
    labels = np.asarray(as_numpy(y, f"labels of {what}"))
    if labels.ndim == 2 and labels.shape[1] == 1:
        _warn_of_column()
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != rows:
        raise InputError(f"{what} has {rows} rows but labels of shape {labels.shape}.")
    if not len(labels):
        raise InputError(f"{what} is empty.")
    if labels.dtype.kind == "c":
        raise InputError(f"labels of {what} are complex numbers. Complex data not supported.")
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise InputError(f"labels of {what} hold NaN or infinity: Input y contains NaN or infinity.")
        whole = labels.astype(np.int64)
        if not np.array_equal(whole, labels):
            raise InputError(
                f"Unknown label type: labels of {what} must be integers, booleans or names, not fractions "
                f"such as {labels[whole != labels][0]}."
            )
        labels = whole
    return labels


def class_labels(
    labels: Shaped[Array, " N"] | None, n_text: int | None, classes: Sequence[Any] | None
) -> Shaped[Array, " C"]:
    """The labels in the order of the text's rows.

    `classes` names the rows. Without it, integers below the number of text's rows are row numbers (and a number that
    is missing is a class without shots), and other numbers are taken in sorted order; there must be as many as text has
    rows. Names of classes say nothing about the order of text's rows, so they are refused. Without text, every
    different label is a class.
    """
    if classes is not None:
        return given_classes(classes, n_text)
    if labels is None or (n_text is not None and _are_below(n_text, labels)):
        return np.arange(n_text or 0)
    if n_text is not None and np.asarray(labels.tolist()).dtype.kind not in "iub":
        first = ", ".join(repr(name) for name in list(dict.fromkeys(labels.tolist()))[:2])
        raise InputError(
            f"labels are names ({first}, …), and the {n_text} rows of text have none, so their order is unknown. Say "
            f"it: classes=[{first}, …] in the order of text's rows; or give text with its names, as a dict "
            "{name: row} or a DataFrame with the names as its index."
        )
    try:
        distinct = np.unique(labels)
    except TypeError as error:
        raise InputError(f"labels of several kinds cannot be sorted ({error}). {NAME_ROWS}") from error
    if n_text is not None and len(distinct) != n_text:
        raise InputError(
            f"labels span {distinct[0]}..{distinct[-1]}, {len(distinct)} different ones, but text has {n_text} "
            f"rows. Allowed are row numbers 0..{n_text - 1}, or as many labels as rows. {NAME_ROWS}"
        )
    return distinct


def named_text(text: Any, classes: Any) -> tuple[Any, Any]:
    """The rows of text, and the names of the classes in the order of the rows.

    Text that carries its names, a dict {name: row} or a frame whose index holds them, is put in the order of `classes`
    if these are given. Other text is returned as it is.
    """
    if isinstance(text, Mapping):
        named = dict(text)
    elif hasattr(text, "index") and hasattr(text, "to_numpy"):
        names, rows = list(text.index), text.to_numpy()
        if names == list(range(len(rows))):
            return rows, classes
        if len(set(names)) < len(names):
            raise InputError("the index of text repeats a name; give one row per class.")
        named = dict(zip(names, rows, strict=True))
    else:
        return text, classes
    order = list(named) if classes is None else np.asarray(classes).tolist()
    absent = [name for name in order if name not in named]
    if absent or len(order) < len(named):
        strange = absent or [name for name in named if name not in order]
        raise InputError(
            f"text and classes name different classes, the first {strange[0]!r}. Leave classes out: text has names."
        )
    rows = [np.asarray(as_numpy(named[name], f"text of {name!r}")) for name in order]
    if len(shapes := {row.shape for row in rows}) > 1 or rows[0].ndim != 1:
        raise InputError(f"rows of text have the shapes {sorted(shapes)}; each class needs one row of d numbers.")
    return np.stack(rows), order


def encode_labels(what: str, labels: Shaped[Array, " N"], classes: Shaped[Array, " C"]) -> Int[Array, " N"]:
    """The row of each label; a label that no class has is refused."""
    places = np.arange(len(classes))
    if classes.dtype.kind in "iu" and np.array_equal(classes, places) and _are_below(len(classes), labels):
        # A view, so that the caller's array stays writable when ours is made read-only.
        return labels.astype(np.int64, copy=False).view()
    row = {label: index for index, label in enumerate(classes.tolist())}
    strange = [label for label in labels.tolist() if label not in row]
    if strange:
        raise InputError(
            f"{len(strange)} labels of {what} are none of the classes, the first of them {strange[0]!r}. "
            f"The classes: {', '.join(map(repr, list(row)[:10]))}{' …' if len(row) > 10 else ''}."
        )
    return np.array([row[label] for label in labels.tolist()], np.int64)


def _are_below(count: int, labels: Shaped[Array, " N"]) -> bool:
    """Whether all labels are integers from 0 to count − 1."""
    return labels.dtype.kind in "iu" and bool(labels.min() >= 0 and labels.max() < count)


def given_classes(classes: Any, n_text: int | None = None) -> Shaped[Array, " C"]:
    """Check a caller's list of classes."""
    names = np.asarray(classes)
    if names.ndim != 1 or not len(names) or len(set(names.tolist())) != len(names):
        raise InputError("classes must be a list of different labels, one per class.")
    if n_text is not None and len(names) != n_text:
        raise InputError(f"classes names {len(names)} classes, but text has {n_text} rows.")
    return names


def _warn_of_column() -> None:
    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        "A column-vector y was passed when a 1d array was expected; it is read as a flat list.",
        DataConversionWarning,
        stacklevel=5,
    )
