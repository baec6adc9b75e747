"""What a method is given: checked, normalised arrays and nothing it did not ask for."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import EvidenceError, InputError, UndefinedError
from kshot.solvers.rows import class_counts, class_means, unit_rows, working_dtype
from kshot.types import Array, Labelled, MethodInfo


@dataclass(frozen=True)
class Task:
    """Unit rows in one dtype, labels 0..C−1, and whatever further evidence the method declared.

    Evidence that a method does not see is an empty array, never another method's data.
    """

    X: Float[Array, "N d"]
    y: Int[Array, " N"]
    text: Float[Array, "C d"]
    n_classes: int
    views: Float[Array, "E N d"] | None
    pool: Labelled | None
    validation: Labelled | None
    test: Labelled | None
    queries: Float[Array, "Q d"] | None = None
    few_shot_validation: Labelled | None = None

    @cached_property
    def counts(self) -> Int[Array, " C"]:
        return class_counts(self.y, self.n_classes)

    @cached_property
    def means(self) -> Float[Array, "C d"]:
        return class_means(self.X, self.y, self.n_classes)


def prepare(
    info: MethodInfo,
    min_shots: int,
    X: Any,
    y: Any,
    *,
    text: Any,
    views: Any = None,
    pool: Any = None,
    validation: Any = None,
    test: Any = None,
    queries: Any = None,
    few_shot_validation: Any = None,
) -> Task:
    """Check everything once, so that no method has to."""
    given = {
        "text": text,
        "support": X,
        "pool": pool,
        "validation": validation,
        "test": test,
        "queries": queries,
        "few_shot_validation": few_shot_validation,
    }
    for name in sorted(info.sees):
        if given[name] is None:
            raise EvidenceError(f"{info.key} needs {name}: {_HOW_TO_PASS[name]}.")
    dtype = working_dtype(np.asarray(X if X is not None else text))
    T = unit_rows(text, "text", dtype) if "text" in info.sees else None
    if "support" in info.sees:
        rows, labels = labelled("the support", X, y, dtype, None if T is None else len(T))
    else:
        rows, labels = np.empty((0, 0 if T is None else T.shape[1]), dtype), np.empty(0, np.int64)
    n_classes = len(T) if T is not None else int(labels.max()) + 1
    if T is None:
        T = np.empty((0, rows.shape[1]), dtype)
    if "support" in info.sees:
        if len(T) and T.shape[1] != rows.shape[1]:
            raise InputError(f"text has dimension {T.shape[1]} but the support has {rows.shape[1]}.")
        _check_shots(info, min_shots, labels, n_classes)
    return Task(
        X=rows,
        y=labels,
        text=T,
        n_classes=n_classes,
        views=_check_views(info, views, rows),
        pool=_extra("pool", info, pool, dtype, n_classes),
        validation=_extra("validation", info, validation, dtype, n_classes),
        test=_extra("test", info, test, dtype, n_classes),
        queries=unit_rows(queries, "the queries", dtype) if "queries" in info.sees else None,
        few_shot_validation=_extra("few_shot_validation", info, few_shot_validation, dtype, n_classes),
    )


def labelled(what: str, X: Any, y: Any, dtype: np.dtype, n_classes: int | None) -> Labelled:
    """Unit rows and integer labels inside 0..C−1."""
    rows = unit_rows(X, what, dtype)
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(rows):
        raise InputError(f"{what} has {len(rows)} rows but labels of shape {labels.shape}.")
    if not len(labels):
        raise InputError(f"{what} is empty.")
    if not np.issubdtype(labels.dtype, np.integer):
        whole = labels.astype(np.int64, copy=True) if np.issubdtype(labels.dtype, np.number) else None
        if whole is None or not np.array_equal(whole, labels):
            raise InputError(f"labels of {what} must be integers 0..C−1, not {labels.dtype}.")
        labels = whole
    top = n_classes - 1 if n_classes is not None else None
    if labels.min() < 0 or (top is not None and labels.max() > top):
        allowed = f"0..{top}" if top is not None else "0 or more"
        raise InputError(f"labels of {what} span {labels.min()}..{labels.max()}; allowed is {allowed}.")
    return Labelled(rows, labels.astype(np.int64, copy=False))


_HOW_TO_PASS = {
    "text": "pass text=T with one prototype per class, shape (C, d)",
    "support": "pass X of shape (N, d) and y of shape (N,)",
    "pool": "pass pool=(X, y), pool images outside the support",
    "validation": "pass validation=(X, y), labelled images outside the support",
    "queries": "pass queries=Q, the unlabelled pictures that it shall classify, shape (Q, d)",
    "few_shot_validation": "pass few_shot_validation=(X, y), a few labelled images per class outside the support",
    "test": "pass test=(X, y); this is an oracle and a bound, not a usable method",
}


def _extra(name: str, info: MethodInfo, value: Any, dtype: np.dtype, n_classes: int) -> Labelled | None:
    if name not in info.sees:
        return None
    return labelled(name, value[0], value[1], dtype, n_classes)


def _check_shots(info: MethodInfo, min_shots: int, labels: Int[Array, " N"], n_classes: int) -> None:
    counts = class_counts(labels, n_classes)
    empty = np.flatnonzero(counts == 0)
    if min_shots and len(empty):
        raise InputError(
            f"{len(empty)} of {n_classes} classes have no shots (first: class {empty[0]}). "
            "Give every class at least one picture or drop the class from text and labels."
        )
    short = np.flatnonzero(counts < min_shots)
    if len(short):
        raise UndefinedError(
            f"{info.key} needs {min_shots} shots per class; class {short[0]} has {counts[short[0]]}."
        )


def _check_views(info: MethodInfo, views: Any, rows: Float[Array, "N d"]) -> Array | None:
    if views is None:
        return None
    if not info.views:
        raise InputError(f"{info.key} does not use augmented views; call fit without views=.")
    views = np.asarray(views)
    if views.ndim != 3 or views.shape[1:] != rows.shape:
        raise InputError(f"views must have shape (E, {rows.shape[0]}, {rows.shape[1]}), not {views.shape}.")
    flat = unit_rows(views.reshape(-1, views.shape[2]), "views", rows.dtype)
    return flat.reshape(views.shape)
