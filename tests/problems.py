"""Small few-shot problems with everything a method may ask for."""

from dataclasses import dataclass

import numpy as np

from kshot.types import Labelled

# Fewer steps and coarser grids of the same recipe, where the whole of it would take minutes here.
SHORTER = {
    "cross_modal_lp": {"iterations": 200},
    "cross_modal_lp_wiseft": {"iterations": 200},
    "ape_val": {"beta_points": 10},
}


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray
    text: np.ndarray
    pool: Labelled
    validation: Labelled
    test: Labelled

    def evidence(self, sees) -> dict:
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

    def cast(self, dtype) -> "Problem":
        def labelled(pair):
            return Labelled(pair.X.astype(dtype), pair.y)

        return Problem(
            self.X.astype(dtype),
            self.y,
            self.text.astype(dtype),
            labelled(self.pool),
            labelled(self.validation),
            labelled(self.test),
        )


def problem(seed=0, classes=6, shots=4, dim=24, noise=0.6, n_test=60, counts=None) -> Problem:
    """Classes in a cone, text shifted by a common offset and a class-specific error, as CLIP's are."""
    rng = np.random.default_rng(seed)
    cone = 2 * rng.normal(size=dim) / np.sqrt(dim)
    centres = cone + rng.normal(size=(classes, dim)) / np.sqrt(dim)
    offset = 2 * rng.normal(size=dim) / np.sqrt(dim)

    def draw(labels):
        rows = centres[labels] + noise * rng.normal(size=(len(labels), dim)) / np.sqrt(dim)
        return Labelled(_unit(rows), labels)

    text = _unit(centres + offset + 0.5 * rng.normal(size=(classes, dim)) / np.sqrt(dim))
    support = draw(np.repeat(np.arange(classes), shots if counts is None else counts))
    residue = draw(np.repeat(np.arange(classes), 8))
    test = draw(rng.integers(0, classes, n_test))
    return Problem(support.X, support.y, text, residue, residue, test)


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
