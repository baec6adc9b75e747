"""Accuracy of a head on pictures that it has not seen.

Fold j leaves out the j-th picture of every class, so that all classes lose equally many; every picture is scored once
by a head that has not seen it. A class's only picture cannot be left out and is not measured.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

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


@dataclass(frozen=True, slots=True)
class Interval:
    """A share with its 95 % interval."""

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


def left_out_scores(
    make: Callable[[], Classifier], shots: Shots, fold: Int[Array, " N"], most_shots: int | None = None
) -> Float[Array, "M C"]:
    """Scores of the measured pictures by heads that have not seen them, from `most_shots` of each class at most."""
    scores = np.zeros((len(shots.y), len(shots.text)), shots.X.dtype)
    with Progress("folds", int(fold.max()) + 1, ends=False) as progress:
        for number in range(fold.max() + 1):
            kept = np.flatnonzero(fold != number)
            if most_shots is not None:
                kept = kept[shot_numbers(shots.y[kept]) < most_shots]
            head = shots.fit(make(), kept)
            left = fold == number
            scores[left] = head.scores(shots.X[left])
            progress.advance()
    return scores[fold >= 0]


def wilson(correct: int, total: int) -> Interval:
    """Wilson's score interval for a share (Wilson, 1927)."""
    from scipy.stats import binomtest

    interval = binomtest(correct, total).proportion_ci(0.95, "wilson")
    return Interval(correct / total, float(interval.low), float(interval.high))


def mean_interval(values: Float[Array, " M"]) -> Interval:
    """A mean with its normal 95 % interval; ±1 for a single value."""
    mean = float(values.mean())
    half = float(Z95 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 1.0
    return Interval(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Curve:
    """Accuracy as a + b·log(1 + shots), from the hits of heads with few and with more shots on the same pictures."""

    shots: tuple[float, float]
    hits: tuple[Bool[Array, " M"], Bool[Array, " M"]]

    def gain(self, before: float, after: float) -> float:
        """Accuracy gained from `before` to `after` shots per class; zero for a falling curve."""
        few, more = (float(hits.mean()) for hits in self.hits)
        return min(max(0.0, more - few) * self._steps(before, after), 1 - more)

    def accuracy(self, shots: float) -> Interval:
        """The measured share with Wilson's interval, its high end carried along the curve to `shots`.

        The measured heads had fewer shots. Each picture is carried by its own difference, so that the interval
        includes the uncertainty of the curve.
        """
        few, more = (hits.astype(float) for hits in self.hits)
        measured = wilson(int(more.sum()), len(more))
        carried = more + self._steps(self.shots[1], shots) * (more - few)
        high = mean_interval(carried).high
        return Interval(measured.value, measured.low, min(1.0, max(measured.high, high)))

    def _steps(self, before: float, after: float) -> float:
        """The distance from `before` to `after` on the curve, over that between the two measured points."""
        return float(np.diff(np.log1p([before, after]))[0] / np.diff(np.log1p(self.shots))[0])
