"""An episode: the pictures that it draws, and the guard that gives a method what it declared and nothing else.

Draws depend on stable ids alone, so that row order and backbone cannot matter.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.errors import EvidenceError
from kshot.solvers.rows import frozen
from kshot.types import HALVES, Array, EncoderConstants, Evidence, Labelled, Views

# Version of drawing, normalising and scoring, part of every record's key: raised when one of them changes.
RULES = 1
POOL_SHARE = 0.68
SMALLEST_RESIDUE = 5
MISSING_SHARE = 0.25


class Episode:
    """One support draw with all evidence; a method reads it only through `reveal`."""

    def __init__(
        self,
        text: Float[Array, "C d"] | None,
        support: Labelled,
        residue: Labelled,
        test: Labelled,
        n_classes: int,
        few_shot_validation: Labelled,
        query_order: Int[Array, " n"],
        validation: Labelled | None = None,
        views: Mapping[Views, Float[Array, "E N d"]] | None = None,
        asked: Int[Array, " A"] | None = None,
        constants: Mapping[str, int | float] | None = None,
        dataset_constants: Mapping[str, int | float] | None = None,
    ):
        self.n_classes = n_classes
        # The classes that the test asks for, all unless given; its labels are their places in this list.
        self.asked = np.arange(n_classes) if asked is None else asked
        self.n_test = len(test.y)
        self._query_order = query_order
        self._views = dict(views or {})
        self._constants = dict(constants or {})
        self._dataset_constants = dict(dataset_constants or {})
        left = int(np.bincount(residue.y, minlength=n_classes).min())
        # Pool statistics, few-shot validation, and validation where the dataset has no split of its own for it, come
        # from the pool minus the support; the rest is there whatever is left.
        self.left: dict[Evidence, int] = {"pool": left, "few_shot_validation": left}
        if validation is None:
            self.left["validation"] = left
        self._evidence: dict[Evidence, Any] = {
            "text": text,
            "support": support,
            "pool": residue,
            "few_shot_validation": few_shot_validation,
            "validation": residue if validation is None else validation,
            "test": test,
        }

    def reveal(self, sees: frozenset[Evidence], views: Views | None = None) -> "Revealed":
        """Exactly the declared evidence; with the support, a method may also ask for augmented views of it."""
        declared: dict[str, Any] = {name: value for name, value in self._evidence.items() if name in sees}
        if "queries" in sees:
            # In a random order: some methods depend on the order, and none may learn how a test set is sorted.
            declared["queries"] = frozen(self.queries[self._query_order])
        if views is not None and "support" in sees:
            declared["views"] = self._views[views]
        if "support" in sees and len(np.unique(self._evidence["support"].y)) < self.n_classes:
            # Some classes have no shots, so the labels do not tell how many classes there are.
            declared["classes"] = range(self.n_classes)
        return Revealed(declared | {"constants": self.constants(sees)})

    def constants(self, sees: frozenset[Evidence]) -> dict[str, int | float]:
        """Values of a method's constants that the encoder or the dataset fixes.

        A dataset's constants were chosen by test accuracy, so only a method that may see the test gets them.
        """
        return EncoderConstants(self._constants | (self._dataset_constants if "test" in sees else {}))

    def fit(self, method: Any, views: Views | None = None) -> Any:
        """Fit a classifier of `kshot.methods` on exactly what it declares to look at, with the constants of the encoder
        and, where it uses them, augmented views of the shots."""
        return method.fit(**self.reveal(method.info.sees, views if method.info.views else None).fit_arguments())

    def score(self, head: Any) -> float:
        """Share of the test pictures that a fitted head gets right."""
        asked = head if len(self.asked) == self.n_classes else head.among(self.asked)
        return float(np.mean(asked.predict(self.queries) == self.asked[self._evidence["test"].y]))

    def declared(self, sees: frozenset[Evidence]) -> "Episode":
        """A copy with this evidence and the test alone."""
        return self._changed(dict.fromkeys(self._evidence.keys() - sees - {"test"}))

    def with_test(self, labels: Int[Array, " n"], pictures: Int[Array, " n"] | None = None) -> "Episode":
        """A copy whose test labels, and test pictures, are in these orders; `queries` stay as they are."""
        test = self._evidence["test"]
        if pictures is None:
            return self._changed({"test": Labelled(test.X, frozen(test.y[labels]))})
        other = self._changed({"test": Labelled(frozen(test.X[pictures]), frozen(test.y[labels]))})
        other._query_order = np.argsort(pictures)[self._query_order]
        return other

    def _changed(self, evidence: Mapping[Evidence, Any]) -> "Episode":
        other = copy(self)
        other._evidence = self._evidence | dict(evidence)
        return other

    @property
    def queries(self) -> Float[Array, "n d"]:
        """Test pictures without their labels, for scoring a fitted head."""
        return self._evidence["test"].X


class Revealed:
    """Attribute access to declared evidence; anything else raises `EvidenceError`."""

    __slots__ = ("_declared",)

    def __init__(self, declared: dict[str, Any]):
        self._declared = declared

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._declared:
            declared = ", ".join(sorted(self._declared.keys() - {"constants"})) or "nothing"
            raise EvidenceError(f"this method declared that it sees {declared}; it asked for '{name}'.")
        return self._declared[name]

    def fit_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `Classifier.fit`."""
        arguments: dict[str, Any] = {k: v for k, v in self._declared.items() if k != "support"}
        if "support" in self._declared:
            arguments |= {"X": self._declared["support"].X, "y": self._declared["support"].y}
        return arguments


@lru_cache(maxsize=64)
def keyed_order(ids: tuple[str, ...], *key: str | int) -> Int[Array, " N"]:
    """A random order of the rows: each id hashed with the key, a counter-based generator over ids.

    Adding or removing a picture never reorders the others. Cells that differ in shots ask for the same order.
    """
    prefix = "\x1f".join(map(str, key)).encode()
    state = hashlib.blake2b(prefix, digest_size=8)
    values = np.empty(len(ids), np.uint64)
    for row, name in enumerate(ids):
        own = state.copy()
        own.update(b"\x1e" + name.encode())
        values[row] = int.from_bytes(own.digest(), "big")
    order = np.lexsort((np.asarray(ids), values))
    order.flags.writeable = False
    return order


def rank_within_class(y: Int[Array, " N"], order: Int[Array, " N"]) -> Int[Array, " N"]:
    """For each row, how many rows of its class come before it in `order`."""
    by_class = order[np.argsort(y[order], kind="stable")]
    starts = np.flatnonzero(np.r_[True, np.diff(y[by_class]) != 0])
    lengths = np.diff(np.r_[starts, len(y)])
    ranks = np.empty(len(y), np.int64)
    ranks[by_class] = np.arange(len(y)) - np.repeat(starts, lengths)
    return ranks


def self_split(dataset: str, ids: Sequence[str], y: Int[Array, " N"]) -> Bool[Array, " N"]:
    """True for pool rows: per class, the first 68 % in an order seeded once per dataset."""
    ranks = rank_within_class(y, keyed_order(tuple(ids), "split", dataset))
    sizes = np.bincount(y)[y]
    return ranks < np.round(POOL_SHARE * sizes)


def cap_pool(dataset: str, ids: Sequence[str], y: Int[Array, " N"], most: int) -> Bool[Array, " N"]:
    """True for at most this many rows of each class: the first in an order seeded once per dataset."""
    return rank_within_class(y, keyed_order(tuple(ids), "cap", dataset)) < most


def draw_support(
    dataset: str,
    ids: Sequence[str],
    y: Int[Array, " N"],
    shots: int | Int[Array, " C"],
    seed: int,
    given: Sequence[int] = (),
) -> Int[Array, " S"]:
    """Rows of the support, class by class, first shot first; nested in `shots`, one number or one per class.

    Rows that are `given` come before those that are drawn.
    """
    order = keyed_order(tuple(ids), "support", dataset, seed)
    if len(given):
        order = np.concatenate([given, order[~np.isin(order, given)]])
    ranks = rank_within_class(y, order)
    chosen = np.flatnonzero(ranks < (shots if isinstance(shots, int) else shots[y]))
    return chosen[np.lexsort((ranks[chosen], y[chosen]))]


def class_shots(
    profile: str, dataset: str, y: Int[Array, " N"], n_classes: int, shots: int, seed: int
) -> Int[Array, " C"]:
    """Shots of every class under a profile of `kshot.types`, at most `shots`; nested in them, and which classes are
    rare or missing depends on dataset and seed alone."""
    if profile in HALVES:
        return np.where(np.isin(np.arange(n_classes), asked_classes("base", n_classes)), shots, 0)
    if profile == "collected":
        sizes = np.bincount(y, minlength=n_classes)
        return np.maximum(1, np.round(shots * sizes / sizes.max())).astype(np.int64)
    order = keyed_order(tuple(map(str, range(n_classes))), "profile", dataset, seed)
    place = np.empty(n_classes)
    place[order] = np.arange(n_classes) / max(n_classes - 1, 1)
    if profile == "long-tailed":
        return np.round(shots ** (1 - place)).astype(np.int64)
    if profile == "missing":
        return np.where(place < MISSING_SHARE, 0, shots)
    return np.full(n_classes, shots)


def drawn_rows(
    dataset: str, ids: Sequence[str], y: Int[Array, " N"], n_classes: int, draws: Iterable[tuple[int, int, str]]
) -> Int[Array, " S"]:
    """Rows that are in the support of any of these (shots, seed, profile)."""
    shots = ((class_shots(profile, dataset, y, n_classes, k, seed), seed) for k, seed, profile in draws)
    return np.unique(np.concatenate([draw_support(dataset, ids, y, own, seed) for own, seed in shots]))


def asked_classes(profile: str, n_classes: int) -> Int[Array, " A"]:
    """The classes that the test asks for: all of them, or one half in the order that the dataset gives them."""
    middle = -(-n_classes // 2)
    halves = {"base": np.arange(middle), "new": np.arange(middle, n_classes)}
    return halves.get(profile, np.arange(n_classes))


def too_thin(y: Int[Array, " N"], n_classes: int, shots: int) -> bool:
    """Whether fewer than five pool pictures of some class are left beside the shots: such a cell is dropped."""
    return int(np.bincount(y, minlength=n_classes).min()) - shots < SMALLEST_RESIDUE
