"""What a head answered about every test picture: all that a metric needs.

Three numbers a picture are kept as float16, rounded to eight significant bits: compressed with zstd, a picture takes
some five bytes a method.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.types import Array

# −log p above counts as this.
LARGEST = 100.0
# Numbers are rounded to so many: fewer different values compress better.
SIGNIFICANT_BITS = 8
# Of a number that is kept; a probability is then off by at most 0.0015, because p·|log p| ≤ 1/e.
RELATIVE_ERROR = 2.0**-SIGNIFICANT_BITS


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


def rounded(numbers: Float[Array, " n"]) -> Float[Array, " n"]:
    """To eight significant bits, as float16."""
    fraction, exponent = np.frexp(numbers)
    return np.ldexp(np.rint(np.ldexp(fraction, SIGNIFICANT_BITS)), exponent - SIGNIFICANT_BITS).astype(np.float16)
