"""A cache of results that several methods of a cell need, such as class means.

The key of a result is the content of the arrays that it was computed from, so a method gets only what it could compute
from its own evidence. Outside `sharing` nothing is kept.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from kshot.types import Array

T = TypeVar("T")


class SharedWork:
    """Results of one cell; their arrays are read-only."""

    def __init__(self) -> None:
        self._results: dict[Hashable, Any] = {}
        # An address identifies an array only as long as the array is kept.
        self._kept: dict[int, Array] = {}

    def once(self, kind: str, compute: Callable[[], T], evidence: tuple[Any, ...]) -> T:
        key = kind, *(self._content(part) for part in evidence)
        if key not in self._results:
            result = compute()
            self._protect(result)
            self._results[key] = result
        return self._results[key]

    def _content(self, part: Any) -> Hashable:
        if not isinstance(part, np.ndarray):
            return part
        if id(part) in self._kept or _cannot_change(part):
            self._kept[id(part)] = part
            place = part.__array_interface__["data"][0], part.strides
        else:
            place = hashlib.blake2b(np.ascontiguousarray(part).data).digest(), None
        return place, part.shape, part.dtype.str

    def _protect(self, result: Any) -> None:
        if isinstance(result, np.ndarray):
            result.flags.writeable = False
            self._kept[id(result)] = result
        elif isinstance(result, tuple):
            for part in result:
                self._protect(part)


def _cannot_change(array: Array) -> bool:
    """Whether the memory belongs to a bytes object, as a cell's evidence does."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, bytes)


_work: ContextVar[SharedWork | None] = ContextVar("shared work", default=None)


@contextmanager
def sharing(work: SharedWork | None) -> Iterator[None]:
    """Keep the results of `once` in `work` inside the block; None keeps nothing."""
    before = _work.set(work)
    try:
        yield
    finally:
        _work.reset(before)


def is_shared() -> bool:
    """Whether a study computes a cell, and not a caller a head."""
    return _work.get() is not None


def once(kind: str, compute: Callable[[], T], *evidence: Any) -> T:
    """The result of `compute()`, which must depend on the evidence alone: arrays, and values that can be hashed."""
    work = _work.get()
    return compute() if work is None else work.once(kind, compute, evidence)
