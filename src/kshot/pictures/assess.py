"""The report on a head: accuracy with an interval, rivals, confusions, the next shot, suspicious pictures."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from kshot.methods import registry
from kshot.pictures.advice import Advice
from kshot.pictures.held_out import Interval, Shots, carried, folds, gain, left_out_scores, paired_difference, wilson
from kshot.solvers.rows import class_counts
from kshot.solvers.softmax import calibrate
from kshot.types import Array

# Share of recognised pictures that shall not be called unsure, and of pictures whose set shall include their class.
KEPT_SHARE = 0.95
# Cosine from which two pictures are reported as the same.
NEAR_DUPLICATE = 0.995
# The left-out head must find another class this many times as likely as the given one.
ODDS = 3.0
BLOCK = 1024
ZERO_SHOT = "zero_shot"
# Heads whose softmax is a probability already: a temperature of left-out heads, which had fewer shots, makes it worse.
CALIBRATED = ("gauss_probe",)


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """A picture that its left-out head and its nearest neighbour both put into another class."""

    row: int
    predicted: int
    probability: float


@dataclass(frozen=True, slots=True)
class Assessment:
    """Measurements on left-out pictures; `accuracy` is None if no class has two pictures.

    `accuracy`, `per_class` and `next_shot` are of the head that is kept, `zero_shot` and `over_zero_shot` of the
    left-out pictures as they were scored.
    """

    measured: int
    per_class: tuple[Interval | None, ...]
    zero_shot: Interval
    temperature: float
    accuracy: Interval | None = None
    over_zero_shot: Interval | None = None
    confusion: tuple[tuple[int, ...], ...] = ()
    next_shot: Interval | None = None
    threshold: float | None = None
    set_threshold: float | None = None
    suspects: tuple[Mislabelled, ...] = ()

    @property
    def verdict(self) -> str:
        """Whether the pictures help; empty for a head that learns nothing from them."""
        if self.accuracy is None:
            return (
                "with one picture per class nothing can be left out: the head is not measured, its probabilities are "
                "not calibrated, and no answer is called unsure. Add a picture to each class."
            )
        lead = self.over_zero_shot
        if lead is None:
            return ""
        points = f"{abs(100 * lead.value):.1f} points"
        if lead.low > 0:
            return f"better than the names alone (zero-shot) by {points} [{100 * lead.low:.1f}, {100 * lead.high:.1f}]."
        if lead.high < 0:
            return (
                f"the names alone (zero-shot) are better by {points} [{-100 * lead.high:.1f}, {-100 * lead.low:.1f}]: "
                "take them with --method zero_shot, or add pictures."
            )
        return (
            f"{self.measured} pictures cannot tell whether the head or the names alone (zero-shot) are better "
            f"({100 * lead.value:+.1f} points [{100 * lead.low:+.1f}, {100 * lead.high:+.1f}])."
        )


def assess(advice: Advice, shots: Shots) -> Assessment:
    from scipy.special import softmax

    fold = folds(shots)
    rows = np.flatnonzero(fold >= 0)
    zero_scores = shots.fit(registry.create("zero_shot")).scores(shots.X)
    zero_hits = zero_scores.argmax(axis=1) == shots.y
    if not len(rows) or _fewest_kept(shots, fold) < advice.make().info.min_shots:
        # Only zero-shot can be calibrated on these pictures: it has not learnt from them.
        temperature = calibrate(zero_scores, shots.y) if advice.method == ZERO_SHOT else 1.0
        return Assessment(0, (None,) * len(shots.text), wilson(int(zero_hits.sum()), len(zero_hits)), temperature)
    y = shots.y[rows]
    scores = left_out_scores(advice.make, shots, fold).astype(np.float64)
    predicted = scores.argmax(axis=1)
    hits = predicted == y
    temperature = 1.0 if advice.method in CALIBRATED else calibrate(scores, y)
    probabilities = softmax(scores / temperature, axis=1)
    confusion = np.zeros((len(shots.text),) * 2, np.int64)
    np.add.at(confusion, (y, predicted), 1)
    now = len(shots.y) / len(np.unique(shots.y))
    before = now - len(rows) / (fold.max() + 1) / len(np.unique(shots.y))
    # Zero-shot learns nothing, so its left-out accuracy is its accuracy.
    before = now if advice.method == ZERO_SHOT else before
    accuracy = carried(int(hits.sum()), len(hits), before, now)
    lead = paired_difference(int((hits & ~zero_hits[rows]).sum()), int((~hits & zero_hits[rows]).sum()), len(rows))
    return Assessment(
        measured=len(rows),
        accuracy=accuracy,
        per_class=tuple(_class_interval(row, c, before, now) for c, row in enumerate(confusion)),
        zero_shot=wilson(int(zero_hits[rows].sum()), len(rows)),
        over_zero_shot=None if advice.method == ZERO_SHOT else lead,
        confusion=tuple(map(tuple, confusion.tolist())),
        next_shot=None if advice.method == ZERO_SHOT else gain(accuracy.value, now, now + 1),
        temperature=temperature,
        threshold=conformal_threshold(margins(scores / temperature)[hits]),
        set_threshold=conformal_threshold(probabilities[np.arange(len(y)), y]),
        suspects=tuple(_mislabelled(shots, rows, probabilities)),
    )


def margins(logits: Float[Array, "n C"]) -> Float[Array, " n"]:
    """How far the likeliest class lies above the mean class: small where a picture is unlike every class.

    On sets with a quarter of the classes left out it finds more pictures of these than the probability does; see
    docs/promises.md.
    """
    return logits.max(axis=1) - logits.mean(axis=1)


def _class_interval(row: Int[Array, " C"], label: int, before: float | int, now: float | int) -> Interval | None:
    """Wilson's interval of a class's hits, its high end carried to the shots that the head has; None without any."""
    correct, total = int(row[label]), int(row.sum())
    if not total:
        return None
    measured = wilson(correct, total)
    if measured.high >= 1:
        return measured
    high = measured.high + max(0.0, gain(measured.high, before, now).high)
    return Interval(measured.value, measured.low, high)


def _fewest_kept(shots: Shots, fold: Int[Array, " N"]) -> int:
    """The fewest pictures of a class that a left-out head learns from, over the classes that have some."""
    present = np.unique(shots.y)
    kept = (class_counts(shots.y[fold != n], len(shots.text))[present] for n in range(fold.max() + 1))
    return min(int(own.min()) for own in kept)


def conformal_threshold(own: Float[Array, " M"]) -> float | None:
    """What 95 of 100 new pictures reach, by the probabilities of left-out pictures' own classes or by the margins of
    the recognised ones; None for fewer than 19.

    The number of an exchangeable new picture reaches the k-th smallest of M with probability 1 − k/(M + 1), so
    k = ⌊(1 − share)·(M + 1)⌋ (Vovk, Gammerman and Shafer, Algorithmic learning in a random world, 2005;
    cross-conformal, all classes pooled). The left-out heads had fewer shots than the head itself; docs/promises.md
    shows the effect.
    """
    k = int((1 - KEPT_SHARE) * (len(own) + 1) + 1e-9)
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
