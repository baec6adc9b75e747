"""Caches of augmented views, one block of rows after the other: each view's rows in the order of the pool."""

import numpy as np
from jaxtyping import Float, Int

from kshot.encode.caches.reading import Rows
from kshot.errors import InputError
from kshot.solvers.rows import unit_rows
from kshot.types import Array

# CLAP's trainer passes 20 times over its shots, each time in a new order.
CLAP_VIEWS = 20


def split_views(pool: Rows | None, views: Rows, count: int | None) -> tuple[Rows, list[Rows]]:
    """The pool, which is the mean over the views where it is not given, and its views one by one."""
    size = len(pool.y) if pool is not None else len(views.y) // count if count else _period(views.y)
    number = len(views.y) // max(size, 1)
    if number * size != len(views.y) or (count is not None and number != count):
        raise InputError(
            f"{len(views.y)} rows of views are not {count or 'a whole number of'} views of {size} pictures each. "
            "Say how many with --view-count."
        )
    labels = views.y[:size] if pool is None else pool.y
    blocks = views.y.reshape(number, size)
    X = views.X.reshape(number, size, -1)
    if not (np.sort(blocks, axis=1) == np.sort(labels)).all():
        raise InputError("the views hold other classes than the pool, or not each picture once. Say --view-count.")
    notes = [f"{number} views of each of {size} pictures"]
    if not (blocks == labels).all():
        X = _matched(X, blocks, labels, None if pool is None else unit_rows(pool.X, "pool"))
        notes.append(
            "the views come in another order each time; within a class each went to the most similar picture. With all "
            "shots of the cache nothing depends on that"
        )
    if pool is None:
        means = unit_rows(X.astype(np.float32).mean(axis=0), "means over views")
        pool = Rows(means, labels, [f"pool/{row:06d}" for row in range(size)], views.notes)
    pool = pool._replace(notes=[*pool.notes, *notes])
    return pool, [Rows(np.ascontiguousarray(view), labels, pool.ids, []) for view in X]


def _period(labels: Int[Array, " M"]) -> int:
    """The number of rows after which the labels repeat."""
    for size in (size for size in range(1, len(labels) // 2 + 1) if len(labels) % size == 0):
        if (
            len(np.unique(labels[:size])) == len(np.unique(labels))
            and (labels.reshape(-1, size) == labels[:size]).all()
        ):
            return size
    raise InputError("the labels of the views do not repeat, so their number is unknown. Say it with --view-count.")


def _matched(
    X: Float[Array, "E N d"], y: Int[Array, "E N"], labels: Int[Array, " N"], like: Float[Array, "N d"] | None
) -> Float[Array, "E N d"]:
    """The rows of every view in the order of `labels`, by the largest total similarity within each class to `like`, or
    to the first view."""
    from scipy.optimize import linear_sum_assignment

    found = np.empty_like(X)
    for number, (rows, own) in enumerate(zip(X, y, strict=True)):
        for name in np.unique(labels):
            there, here = np.flatnonzero(labels == name), np.flatnonzero(own == name)
            reference = (X[0] if like is None else like)[there].astype(np.float32)
            pairs = linear_sum_assignment(reference @ rows[here].astype(np.float32).T, maximize=True)
            found[number, there] = rows[here[pairs[1]]]
    return found
