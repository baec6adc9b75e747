"""The evidence guard: a method gets what it declared, and a lock on everything else."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from kshot.errors import EvidenceError
from kshot.solvers.rows import frozen
from kshot.types import Array, Evidence, Labelled, Views


class Episode:
    """One support draw with all that could be known about it; nothing is readable except by `reveal`."""

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
        """Exactly the declared evidence; who sees the support may ask for augmented views of it."""
        declared: dict[str, Any] = {name: value for name, value in self._evidence.items() if name in sees}
        if "queries" in sees:
            # In an order of their own: some methods depend on it, and none shall learn how a set is sorted.
            declared["queries"] = frozen(self.queries[self._query_order])
        if views is not None and "support" in sees:
            declared["views"] = self._views[views]
        if "support" in sees and len(np.unique(self._evidence["support"].y)) < self.n_classes:
            # Classes without shots are meant: all are named.
            declared["classes"] = range(self.n_classes)
        return Revealed(declared | {"constants": self.constants(sees)})

    def constants(self, sees: frozenset[Evidence]) -> dict[str, int | float]:
        """What encoder and dataset know of a method's constants.

        A dataset's were chosen by people who saw test accuracies: only a method that may see those gets them.
        """
        return self._constants | (self._dataset_constants if "test" in sees else {})

    def fit(self, method: Any, views: Views | None = None) -> Any:
        """Fit a classifier of `kshot.methods` on exactly what it declares to look at, with the constants of the encoder
        and, where it uses them, augmented views of the shots."""
        return method.fit(**self.reveal(method.info.sees, views if method.info.views else None).fit_arguments())

    def score(self, head: Any) -> float:
        """Share of the test pictures that a fitted head gets right."""
        asked = head if len(self.asked) == self.n_classes else head.among(self.asked)
        return float(np.mean(asked.predict(self.queries) == self.asked[self._evidence["test"].y]))

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
