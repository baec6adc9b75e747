"""Metrics of one record: from the answers of a head to one number.

A metric of your own is a `Metric` too (kshot.extend); it runs on answers that were kept before it was written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from kshot.errors import StudyError, unknown
from kshot.own_code import load_named
from kshot.stats.answers import Answers
from kshot.types import Array

BINS = 15


@dataclass(frozen=True, slots=True)
class Metric:
    """`value` takes answers; it is shown times `scale` with so many `digits`. `less_is_better` turns the ranking."""

    key: str
    title: str
    value: Callable[[Answers], float]
    less_is_better: bool = True
    scale: int = 1
    digits: int = 3


def accuracy(answers: Answers) -> float:
    return float(np.mean(answers.hits))


def negative_log_likelihood(answers: Answers) -> float:
    """Mean of −log p(true class), in nats; one probability counts as at least e^−100."""
    return float(np.mean(answers.true_surprise))


def brier_score(answers: Answers) -> float:
    """Mean of Σ_c (p_c − 1[c = y])², from 0 to 2 (Brier 1950)."""
    return float(np.mean(answers.squares - 2 * np.exp(-answers.true_surprise) + 1))


def calibration_error(answers: Answers) -> float:
    """Expected calibration error of the predicted class over 15 bins of equal mass: Σ_b n_b/n·|accuracy − confidence|
    (Nguyen & O'Connor 2015). Pictures of equal confidence share their hits, so that their order does not matter.

    It is biased upwards: `calibration_noise` is what a head without any error would show.
    """
    confidence, hits = _by_confidence(answers)
    gaps = [abs(float(np.sum(hits[bin]) - np.sum(confidence[bin]))) for bin in _equal_masses(len(hits), BINS)]
    return sum(gaps) / len(hits)


def calibration_noise(answers: Answers) -> float:
    """A bound on the ECE that a perfectly calibrated head with these confidences shows on average.

    In a bin of n_b pictures the gap has mean 0 and variance Σp(1−p)/n_b²; the mean of its size is at most the root of
    that (Jensen), and about √(2/π) of the bound where bins are large.
    """
    confidence, _ = _by_confidence(answers)
    spread = confidence * (1 - confidence)
    return sum(float(np.sqrt(np.sum(spread[bin]))) for bin in _equal_masses(len(spread), BINS)) / len(spread)


def class_mean_accuracy(answers: Answers) -> float:
    """Mean over the classes with test pictures of the accuracy on each."""
    return float(np.mean(_class_accuracies(answers)))


def worst_decile_accuracy(answers: Answers) -> float:
    """Mean accuracy of the tenth of the classes that fare worst, at least one; chosen by the same test pictures, so
    lower than the classes' own accuracy where these are few."""
    found = np.sort(_class_accuracies(answers))
    return float(np.mean(found[: -(-len(found) // 10)]))


def selective_risk(answers: Answers) -> float:
    """Area under the risk–coverage curve: the error among the k most confident pictures, averaged over all k
    (Geifman & El-Yaniv 2017). Pictures of equal confidence count as in the mean over their orders."""
    _, hits = _by_confidence(answers)
    errors = np.cumsum(1 - hits[::-1])
    return float(np.mean(errors / np.arange(1, len(hits) + 1)))


def unseen_accuracy(answers: Answers) -> float:
    """Accuracy on the pictures of classes without shots; NaN where all have some."""
    return _accuracy_where(answers, unseen=True)


def seen_accuracy(answers: Answers) -> float:
    """Accuracy on the pictures of classes with shots, where some classes have none."""
    return _accuracy_where(answers, unseen=False)


ACCURACY = Metric("accuracy", "accuracy", accuracy, less_is_better=False, scale=100, digits=1)
METRICS = {
    metric.key: metric
    for metric in (
        ACCURACY,
        Metric("nll", "NLL", negative_log_likelihood),
        Metric("brier", "Brier score", brier_score),
        Metric("ece", "ECE", calibration_error, scale=100, digits=1),
        Metric("ece_noise", "ECE of a calibrated head, at most", calibration_noise, scale=100, digits=1),
        Metric("class_mean", "class-mean accuracy", class_mean_accuracy, False, 100, 1),
        Metric("worst_decile", "worst-decile accuracy", worst_decile_accuracy, False, 100, 1),
        Metric("aurc", "selective risk (AURC)", selective_risk, scale=100, digits=1),
    )
}

# Known only where a study leaves classes without shots.
OF_MISSING_SHOTS = {
    metric.key: metric
    for metric in (
        Metric("seen", "accuracy on classes with shots", seen_accuracy, False, 100, 1),
        Metric("unseen", "accuracy on classes without shots", unseen_accuracy, False, 100, 1),
    )
}


def find_metric(given: "str | Metric") -> Metric:
    """A metric by its name; one of your own by `module:NAME`."""
    if isinstance(given, Metric):
        return given
    if ":" in given:
        return _own_metric(given)
    known = METRICS | OF_MISSING_SHOTS
    if given not in known:
        raise StudyError(unknown("metric", given, known, "One of your own is named module:NAME."))
    return known[given]


def _own_metric(given: str) -> Metric:
    found = load_named("metric", given)
    if not isinstance(found, Metric):
        raise StudyError(f"{given} is a {type(found).__name__}, not a kshot.extend.Metric.")
    return found


def _accuracy_where(answers: Answers, unseen: bool) -> float:
    if answers.unseen is None or not (asked := answers.unseen[answers.truth] == unseen).any():
        return float("nan")
    return float(np.mean(answers.hits[asked]))


def _class_accuracies(answers: Answers) -> Float[Array, " C"]:
    sizes = np.bincount(answers.truth, minlength=answers.n_classes)
    right = np.bincount(answers.truth, answers.hits, answers.n_classes)
    return right[sizes > 0] / sizes[sizes > 0]


def _by_confidence(answers: Answers) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Confidences from low to high with the hits of each; equal confidences get the mean of theirs."""
    values, group, sizes = np.unique(answers.confidence, return_inverse=True, return_counts=True)
    shares = np.bincount(group, answers.hits) / sizes
    return np.repeat(values, sizes), np.repeat(shares, sizes)


def _equal_masses(n: int, bins: int) -> list[slice]:
    """Slices whose sizes differ by at most one."""
    edges = np.linspace(0, n, min(bins, n) + 1).round().astype(int)
    return [slice(int(low), int(high)) for low, high in pairwise(edges)]
