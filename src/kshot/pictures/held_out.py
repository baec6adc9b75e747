"""Accuracy of a head on pictures that it has not seen.

Fold j leaves out the j-th picture of every class, so that all classes lose equally many; every picture is scored once
by a head that has not seen it. A class's only picture cannot be left out and is not measured.

The left-out heads had fewer shots than the head that is kept. Its accuracy follows from one rule: the odds of a right
answer grow like K^0.4, on single sets with an exponent within 0.4 ± 0.55. docs/promises.md judges the rule on every set
with the exponent of the others; `python -m tools.promises` measures it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from kshot.methods.base import Classifier
from kshot.progress import Progress
from kshot.solvers.folds import has_siblings
from kshot.solvers.rows import class_counts, shot_numbers
from kshot.types import Array

MOST_FOLDS = 8
# Multiplications per pass over the pictures above which a head takes most of a minute.
LARGE = 10**9
FOLDS_WHEN_LARGE = 2
Z95 = 1.959964
# The exponent of the odds of a right answer in K, and how far that of a single set may lie from it.
GROWTH, SPREAD = 0.4, 0.55


@dataclass(frozen=True, slots=True)
class Interval:
    """A share with an interval; docs/promises.md shows how often it holds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Shots:
    """Unit features (N, d) with labels, a text prototype per class, and the constants of their encoder."""

    X: Float[Array, "N d"]
    y: Int[Array, " N"]
    text: Float[Array, "C d"]
    constants: Mapping[str, int | float] = field(default_factory=dict)

    @property
    def counts(self) -> Int[Array, " C"]:
        return class_counts(self.y, len(self.text))

    def fit(self, method: Classifier, rows: Int[Array, " n"] | slice = slice(None)) -> Classifier:
        """The method, fitted on these of the shots; classes that have text but no pictures are known to it."""
        classes = range(len(self.text))
        return method.fit(self.X[rows], self.y[rows], text=self.text, classes=classes, constants=self.constants)


def folds(shots: Shots) -> Int[Array, " N"]:
    """The fold that leaves each picture out; −1 for a class's only picture."""
    large = shots.X.size * len(shots.text) > LARGE
    most = min(int(shots.counts.max()), FOLDS_WHEN_LARGE if large else MOST_FOLDS)
    return np.where(has_siblings(shots.y), shot_numbers(shots.y) % most, -1)


def left_out_scores(make: Callable[[], Classifier], shots: Shots, fold: Int[Array, " N"]) -> Float[Array, "M C"]:
    """Scores of the measured pictures by heads that have not seen them."""
    scores = np.zeros((len(shots.y), len(shots.text)), shots.X.dtype)
    with Progress("checks of the head", int(fold.max()) + 1, ends=False) as progress:
        for number in range(fold.max() + 1):
            head = shots.fit(make(), np.flatnonzero(fold != number))
            left = fold == number
            scores[left] = head.scores(shots.X[left])
            progress.advance()
    return scores[fold >= 0]


def wilson(correct: int, total: int) -> Interval:
    """Wilson's score interval for a share (Wilson, 1927)."""
    from scipy.stats import binomtest

    interval = binomtest(correct, total).proportion_ci(0.95, "wilson")
    return Interval(correct / total, float(interval.low), float(interval.high))


def carried(correct: int, total: int, before: float | int, after: float | int) -> Interval:
    """The expected accuracy with `after` shots per class, from hits of heads that had `before`."""
    share = (correct + 0.5) / (total + 1)
    steps = math.log(after / before)
    centre = _logit(share) + GROWTH * steps
    half = Z95 * math.hypot(1 / math.sqrt(total * share * (1 - share)), SPREAD * steps)
    return Interval(_share(centre), _share(centre - half), _share(centre + half))


def gain(accuracy: float, before: float | int, after: float | int) -> Interval:
    """Accuracy that is gained from `before` to `after` shots per class, with what it is on slow and on fast sets."""
    steps = math.log(after / before)
    return Interval(
        *(_share(_logit(accuracy) + b * steps) - accuracy for b in (GROWTH, GROWTH - SPREAD, GROWTH + SPREAD))
    )


def paired_difference(better: int, worse: int, total: int) -> Interval:
    """Difference of two shares on the same pictures, with Agresti and Min's interval (Statistics in Medicine, 2005):
    Wald's with half a picture more in each of the four cells."""
    shift = (better - worse) / (total + 2)
    half = Z95 * math.sqrt(((better + worse + 1) / (total + 2) - shift**2) / (total + 2))
    return Interval((better - worse) / total, max(shift - half, -1.0), min(shift + half, 1.0))


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
