"""The report on a head: accuracy with an interval, rivals, confusions, the next shot, suspicious pictures."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.methods import registry
from kshot.pictures.advice import Advice
from kshot.pictures.held_out import Curve, Interval, Shots, folds, left_out_scores, mean_interval, wilson
from kshot.solvers.rows import class_counts
from kshot.solvers.softmax import calibrate
from kshot.types import Array

# Share of the recognised left-out pictures that stays above the "none of these" threshold.
KEPT_SHARE = 0.95
# Share of pictures whose set of classes shall include the right one.
SET_SHARE = 0.95
# Cosine from which two pictures are reported as the same.
NEAR_DUPLICATE = 0.995
# The left-out head must find another class this many times as likely as the given one.
ODDS = 3.0
BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """A picture that its left-out head and its nearest neighbour both put into another class."""

    row: int
    predicted: int
    probability: float


@dataclass(frozen=True, slots=True)
class Assessment:
    """Measurements on left-out pictures; `accuracy` is None if no class has two pictures."""

    measured: int
    per_class: tuple[Interval | None, ...]
    zero_shot: Interval
    temperature: float
    accuracy: Interval | None = None
    blend: Interval | None = None
    over_zero_shot: Interval | None = None
    confusion: tuple[tuple[int, ...], ...] = ()
    next_shot: float | None = None
    threshold: float = 0.0
    set_threshold: float | None = None
    suspects: tuple[Mislabelled, ...] = ()

    @property
    def verdict(self) -> str:
        if self.accuracy is None or self.over_zero_shot is None:
            return "so few pictures that the head cannot be measured, only zero-shot can. Add one to each class."
        gain = self.over_zero_shot
        if gain.value < 0:
            unsure = f", although {self.measured} pictures cannot settle it" if gain.high >= 0 else ""
            return (
                f"zero-shot is better here by {-100 * gain.value:.1f} points [{-100 * gain.high:.1f}, "
                f"{-100 * gain.low:.1f}]{unsure}: take it with --method zero_shot, or add pictures."
            )
        if gain.value == 0:
            return "zero-shot is as good here: the pictures add nothing that the names did not say."
        if gain.low <= 0:
            return (
                f"zero-shot is as good here, as far as {self.measured} pictures can tell "
                f"({100 * gain.value:+.1f} points [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}])."
            )
        return f"better than zero-shot by {100 * gain.value:.1f} points [{100 * gain.low:.1f}, {100 * gain.high:.1f}]."


def assess(advice: Advice, shots: Shots) -> Assessment:
    from scipy.special import softmax

    fold = folds(shots)
    rows = np.flatnonzero(fold >= 0)
    zero_scores = shots.fit(registry.create("zero_shot")).scores(shots.X)
    zero_hits = zero_scores.argmax(axis=1) == shots.y
    if not len(rows) or _fewest_kept(shots, fold) < advice.make().info.min_shots:
        # Only zero-shot can be calibrated on these pictures: it has not learnt from them.
        temperature = calibrate(zero_scores, shots.y) if advice.method == "zero_shot" else 1.0
        return Assessment(0, (None,) * len(shots.text), wilson(int(zero_hits.sum()), len(zero_hits)), temperature)
    y = shots.y[rows]
    scores = left_out_scores(advice.make, shots, fold)
    predicted = scores.argmax(axis=1)
    hits = predicted == y
    temperature = calibrate(scores, y)
    probabilities = softmax(scores.astype(np.float64) / temperature, axis=1)
    confusion = np.zeros((len(shots.text),) * 2, np.int64)
    np.add.at(confusion, (y, predicted), 1)
    totals = confusion.sum(axis=1)
    per_class = [wilson(int(confusion[c, c]), int(totals[c])) if totals[c] else None for c in range(len(totals))]
    curve = _curve(advice, shots, fold, hits, zero_hits[rows])
    now = _mean_count(shots.y)
    return Assessment(
        measured=len(rows),
        accuracy=curve.accuracy(now),
        per_class=tuple(per_class),
        zero_shot=wilson(int(zero_hits[rows].sum()), len(rows)),
        blend=_blend(shots, fold),
        over_zero_shot=mean_interval(hits.astype(float) - zero_hits[rows]),
        confusion=tuple(map(tuple, confusion.tolist())),
        next_shot=curve.gain(now, now + 1),
        temperature=temperature,
        threshold=float(np.quantile(probabilities.max(axis=1)[hits], 1 - KEPT_SHARE)) if hits.any() else 0.0,
        set_threshold=conformal_threshold(probabilities[np.arange(len(y)), y]),
        suspects=tuple(_mislabelled(shots, rows, probabilities)),
    )


def _curve(
    advice: Advice, shots: Shots, fold: Int[Array, " N"], hits: Bool[Array, " M"], zero_hits: Bool[Array, " M"]
) -> Curve:
    """The learning curve through the left-out heads and heads with half their shots, or zero-shot for too few."""
    had = _mean_count(shots.y) - (fold >= 0).sum() / (fold.max() + 1) / len(np.unique(shots.y))
    fewer = int(had) // 2
    if fewer < max(1, advice.make().info.min_shots):
        return Curve((0.0, had), (zero_hits, hits))
    scores = left_out_scores(advice.make, shots, fold, fewer)
    return Curve((float(fewer), had), (scores.argmax(axis=1) == shots.y[fold >= 0], hits))


def _mean_count(y: Int[Array, " N"]) -> float:
    """Mean number of pictures of the classes that have some."""
    return len(y) / len(np.unique(y))


def _blend(shots: Shots, fold: Int[Array, " N"]) -> Interval | None:
    """Left-out accuracy of the LOO blend, whose own leave-one-out needs two pictures of each class."""
    if _fewest_kept(shots, fold) < 2:
        return None
    scores = left_out_scores(lambda: registry.create("loo_blend"), shots, fold)
    return wilson(int((scores.argmax(axis=1) == shots.y[fold >= 0]).sum()), len(scores))


def _fewest_kept(shots: Shots, fold: Int[Array, " N"]) -> int:
    """The fewest pictures of a class that a left-out head learns from, over the classes that have some."""
    present = np.unique(shots.y)
    kept = (class_counts(shots.y[fold != n], len(shots.text))[present] for n in range(fold.max() + 1))
    return min(int(own.min()) for own in kept)


def conformal_threshold(own: Float[Array, " M"]) -> float | None:
    """The least probability of a class in a conformal set; None for fewer than 19 pictures.

    `own` are the probabilities of left-out pictures' own classes. That of an exchangeable new picture reaches the k-th
    smallest of M with probability 1 − k/(M + 1), so k = ⌊(1 − share)·(M + 1)⌋ (Vovk, Gammerman and Shafer, Algorithmic
    learning in a random world, 2005; cross-conformal, all classes pooled). The left-out heads had fewer shots than the
    head itself; docs/promises.md shows the effect.
    """
    k = int((1 - SET_SHARE) * (len(own) + 1) + 1e-9)
    return float(np.sort(own)[k - 1]) if k else None


def _mislabelled(shots: Shots, measured: Int[Array, " M"], probabilities: Float[Array, "M C"]) -> list[Mislabelled]:
    """Pictures that may have a wrong label, the most suspicious first."""
    nearest, _ = _nearest_rows(shots)
    suspects = []
    for row, own in zip(measured.tolist(), probabilities, strict=True):
        predicted, label = int(own.argmax()), shots.y[row]
        if predicted != label and shots.y[nearest[row]] == predicted and own[predicted] >= ODDS * own[label]:
            suspects.append(Mislabelled(row, predicted, float(own[predicted])))
    return sorted(suspects, key=lambda one: -one.probability)


def near_duplicates(shots: Shots) -> tuple[tuple[int, int], ...]:
    """Pairs of pictures that are almost the same to the encoder."""
    nearest, cosine = _nearest_rows(shots)
    pairs = {(min(i, int(n)), max(i, int(n))) for i, n in enumerate(nearest) if cosine[i] >= NEAR_DUPLICATE}
    return tuple(sorted(pairs))


def _nearest_rows(shots: Shots) -> tuple[Int[Array, " N"], Float[Array, " N"]]:
    """The nearest other picture of each picture, and the cosine to it."""
    nearest, best = np.zeros(len(shots.y), np.int64), np.full(len(shots.y), -1.0, np.float32)
    for start in range(0, len(shots.y), BLOCK):
        cosine = shots.X[start : start + BLOCK] @ shots.X.T
        rows = np.arange(len(cosine))
        cosine[rows, start + rows] = -np.inf
        nearest[start + rows] = cosine.argmax(axis=1)
        best[start + rows] = cosine.max(axis=1)
    return nearest, best
