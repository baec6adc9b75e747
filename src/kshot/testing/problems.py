"""Small few-shot problems with everything a method may ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import DTypeLike

from kshot.types import Array, Evidence, Labelled


@dataclass(frozen=True)
class Problem:
    """Shots with labels 0..C−1, text, and further labelled rows for those that declare them."""

    X: Float[Array, "N d"]
    y: Shaped[Array, " N"]
    text: Float[Array, "C e"]
    pool: Labelled
    validation: Labelled
    test: Labelled

    def evidence(self, sees: frozenset[Evidence]) -> dict[str, Any]:
        """Keyword arguments of `fit` for a method that sees exactly this."""
        everything = {
            "text": self.text,
            "queries": self.test.X,
            "pool": self.pool,
            "few_shot_validation": Labelled(self.validation.X[::2], self.validation.y[::2]),
            "validation": self.validation,
            "test": self.test,
        }
        support = {"X": self.X, "y": self.y} if "support" in sees else {}
        return support | {name: value for name, value in everything.items() if name in sees}

    def cast(self, dtype: DTypeLike) -> "Problem":
        return self.sent_through(lambda rows: rows.astype(dtype), lambda y: y)

    def sent_through(
        self, rows: Callable[[Array], Array], labels: Callable[[Array], Array], text: Array | None = None
    ) -> "Problem":
        """The same problem with all rows and labels sent through functions; text like rows unless it is given."""
        pool, validation, test = (
            Labelled(rows(pair.X), labels(pair.y)) for pair in (self.pool, self.validation, self.test)
        )
        text = rows(self.text) if text is None else text
        return Problem(rows(self.X), labels(self.y), text, pool, validation, test)


def problem(
    seed: int = 0,
    classes: int = 6,
    shots: int = 4,
    dim: int = 24,
    noise: float = 0.6,
    n_test: int = 60,
    counts: Sequence[int] | None = None,
) -> Problem:
    """Classes in a cone, text shifted by a common offset and a class-specific error, as CLIP's are."""
    rng = np.random.default_rng(seed)
    cone = 2 * rng.normal(size=dim) / np.sqrt(dim)
    centres = cone + rng.normal(size=(classes, dim)) / np.sqrt(dim)
    offset = 2 * rng.normal(size=dim) / np.sqrt(dim)

    def draw(labels: Array) -> Labelled:
        rows = centres[labels] + noise * rng.normal(size=(len(labels), dim)) / np.sqrt(dim)
        return Labelled(_unit(rows), labels)

    text = _unit(centres + offset + 0.5 * rng.normal(size=(classes, dim)) / np.sqrt(dim))
    support = draw(np.repeat(np.arange(classes), shots if counts is None else counts))
    residue = draw(np.repeat(np.arange(classes), 8))
    test = draw(rng.integers(0, classes, n_test))
    return Problem(support.X, support.y, text, residue, residue, test)


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
