"""What a head answered about every test picture: all that a metric needs, and a table of it.

Three numbers a picture are kept as float16, rounded to eight significant bits: compressed with zstd, a picture takes
some five bytes a method.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.errors import InputError
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

# −log p above counts as this.
LARGEST = 100.0
# Numbers are rounded to so many: fewer different values compress better.
SIGNIFICANT_BITS = 8
# Of a number that is kept; a probability is then off by at most 0.0015, because p·|log p| ≤ 1/e.
RELATIVE_ERROR = 2.0**-SIGNIFICANT_BITS
MOST_CLASSES = 2**16


@dataclass(frozen=True, slots=True)
class Answers:
    """Per picture: its class, the predicted one, −log of the probabilities of both, and the sum of all squared
    probabilities. `unseen` are the classes without shots, where that is known."""

    truth: Int[Array, " n"]
    predicted: Int[Array, " n"]
    true_surprise: Float[Array, " n"]
    top_surprise: Float[Array, " n"]
    squares: Float[Array, " n"]
    n_classes: int
    unseen: Bool[Array, " C"] | None = None

    @property
    def hits(self) -> Bool[Array, " n"]:
        return self.predicted == self.truth

    @property
    def confidence(self) -> Float[Array, " n"]:
        """The probability of the predicted class."""
        return np.exp(-self.top_surprise)


def answers_of(probabilities: Float[Array, "n C"], truth: Int[Array, " n"], predicted: Int[Array, " n"]) -> Answers:
    """Exact answers; the probability of the predicted class is the top one, whatever rounding did to the others."""
    p = np.asarray(probabilities, np.float64)
    rows = np.arange(len(p))
    with np.errstate(divide="ignore"):
        logs = np.log(p[rows, truth]), np.log(p[rows, predicted])
    true_surprise, top_surprise = (np.minimum(np.abs(log), LARGEST) for log in logs)
    return Answers(truth, predicted, true_surprise, top_surprise, np.einsum("nc,nc->n", p, p), p.shape[1])


def concatenate(parts: list[Answers]) -> Answers:
    """Join the answers about several blocks of pictures."""
    names = ("truth", "predicted", "true_surprise", "top_surprise", "squares")
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return Answers(*joined, n_classes=parts[0].n_classes)


def answers_table(answers: Mapping[str, Answers]) -> "pa.Table":
    """One row a method and picture; the predicted class's surprise is null where it is the true class's."""
    import pyarrow as pa

    most = max(one.n_classes for one in answers.values())
    if most > MOST_CLASSES:
        raise InputError(
            f"answers are kept for at most {MOST_CLASSES:,} classes, not {most:,}. "
            "Write answers = false in the study file."
        )
    parts = [
        pa.table(
            {
                "method": pa.array([method] * len(one.truth), pa.string()),
                "n_classes": pa.array(np.full(len(one.truth), one.n_classes, np.int32)),
                "truth": pa.array(one.truth.astype(np.uint16)),
                "predicted": pa.array(one.predicted.astype(np.uint16)),
                "true_surprise": pa.array(_rounded(one.true_surprise)),
                "top_surprise": pa.array(_rounded(one.top_surprise), mask=one.hits),
                "squares": pa.array(_rounded(one.squares)),
            }
        )
        for method, one in answers.items()
    ]
    return pa.concat_tables(parts)


def answers_from_table(table: "pa.Table") -> dict[str, Answers]:
    """The inverse of `answers_table`, within RELATIVE_ERROR of every number."""
    methods = np.array(table["method"].to_pylist(), object)
    found = {}
    for method in dict.fromkeys(methods):
        rows = table.filter(methods == method)
        truth, predicted = (rows[name].to_numpy().astype(np.int64) for name in ("truth", "predicted"))
        true, top, squares = (
            rows[name].to_numpy().astype(np.float64) for name in ("true_surprise", "top_surprise", "squares")
        )
        n_classes = rows["n_classes"][0].as_py()
        found[method] = Answers(truth, predicted, true, np.where(predicted == truth, true, top), squares, n_classes)
    return found


def _rounded(numbers: Float[Array, " n"]) -> Float[Array, " n"]:
    fraction, exponent = np.frexp(numbers)
    return np.ldexp(np.rint(np.ldexp(fraction, SIGNIFICANT_BITS)), exponent - SIGNIFICANT_BITS).astype(np.float16)
