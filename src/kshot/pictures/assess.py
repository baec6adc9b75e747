"""Everything an honest report says about a head: accuracy with an interval, rivals, confusion, the next shot."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.methods import registry
from kshot.pictures.advice import Advice
from kshot.pictures.held_out import Curve, Interval, LeftOut, Shots, folds, left_out_scores, paired_difference, wilson
from kshot.pictures.suspects import Mislabelled, mislabelled
from kshot.solvers.rows import class_counts
from kshot.solvers.temperature import calibrate
from kshot.types import Array

# Of the left-out pictures that were recognised, this share stays above the "none of these" threshold.
KEPT_SHARE = 0.95
# The set of classes that a prediction names is to hold the right one this often.
SET_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Assessment:
    """What left-out pictures say; `accuracy` is None where no class has two pictures.

    The left-out heads had fewer shots than the head itself, so the high end of `accuracy` is carried along the
    learning curve.
    """

    measured: int
    accuracy: Interval | None
    per_class: tuple[Interval | None, ...]
    zero_shot: Interval
    blend: Interval | None
    over_zero_shot: Interval | None
    confusion: tuple[tuple[int, ...], ...]
    next_shot: float | None
    temperature: float
    threshold: float
    set_threshold: float | None
    suspects: tuple[Mislabelled, ...]
    left_out: LeftOut | None

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
    needed = advice.make().info.min_shots
    if not len(rows) or _left(shots, fold) < needed:
        return _unmeasured(advice, shots, zero_scores, zero_hits)
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
        over_zero_shot=paired_difference(hits, zero_hits[rows]),
        confusion=tuple(map(tuple, confusion.tolist())),
        next_shot=curve.gain(now, now + 1),
        temperature=temperature,
        threshold=_threshold(probabilities, hits),
        set_threshold=conformal_threshold(probabilities[np.arange(len(y)), y]),
        suspects=tuple(mislabelled(shots, rows, probabilities)),
        left_out=LeftOut.of(shots, rows, probabilities),
    )


def _curve(
    advice: Advice, shots: Shots, fold: Int[Array, " N"], hits: Bool[Array, " M"], zero_hits: Bool[Array, " M"]
) -> Curve:
    """Through the left-out heads and others with half their shots, or zero-shot where half is too few."""
    had = _mean_count(shots.y) - (fold >= 0).sum() / (fold.max() + 1) / len(np.unique(shots.y))
    fewer = int(had) // 2
    if fewer < max(1, advice.make().info.min_shots):
        return Curve((0.0, had), (zero_hits, hits))
    scores = left_out_scores(advice.make, shots, fold, fewer)
    return Curve((float(fewer), had), (scores.argmax(axis=1) == shots.y[fold >= 0], hits))


def _mean_count(y: Int[Array, " N"]) -> float:
    """Pictures per class, over the classes that have some."""
    return len(y) / len(np.unique(y))


def _blend(shots: Shots, fold: Int[Array, " N"]) -> Interval | None:
    """The LOO blend, left out in the same way; its own leave-one-out needs two pictures to be left."""
    if _left(shots, fold) < 2:
        return None
    scores = left_out_scores(lambda: registry.create("loo_blend"), shots, fold)
    return wilson(int((scores.argmax(axis=1) == shots.y[fold >= 0]).sum()), len(scores))


def _left(shots: Shots, fold: Int[Array, " N"]) -> int:
    """The fewest pictures of a class that a left-out head learns from; a class by its name alone is not counted."""
    taught = np.unique(shots.y)
    left = (class_counts(shots.y[fold != n], len(shots.text))[taught] for n in range(fold.max() + 1))
    return min(int(own.min()) for own in left)


def _threshold(probabilities: Float[Array, "M C"], hits: Bool[Array, " M"]) -> float:
    top = probabilities.max(axis=1)[hits]
    return float(np.quantile(top, 1 - KEPT_SHARE)) if len(top) else 0.0


def conformal_threshold(own: Float[Array, " M"]) -> float | None:
    """The least probability of a class in a conformal set; None where there are too few pictures to tell.

    `own` is what left-out pictures gave their own class. Were a new picture exchangeable with them, its own class would
    reach the k-th smallest of M with probability 1 − k/(M + 1), so k = ⌊(1 − share)·(M + 1)⌋ (Vovk, Gammerman and
    Shafer, Algorithmic learning in a random world, 2005; cross-conformal, all classes pooled). The left-out heads had
    fewer shots than the head itself; docs/promises.md shows what that changes.
    """
    k = int((1 - SET_SHARE) * (len(own) + 1) + 1e-9)
    return float(np.sort(own)[k - 1]) if k else None


def _unmeasured(
    advice: Advice, shots: Shots, zero_scores: Float[Array, "N C"], zero_hits: Bool[Array, " N"]
) -> Assessment:
    """Zero-shot looks at no picture, so the pictures may calibrate it; a trained head has its own scale."""
    return Assessment(
        measured=0,
        accuracy=None,
        per_class=(None,) * len(shots.text),
        zero_shot=wilson(int(zero_hits.sum()), len(zero_hits)),
        blend=None,
        over_zero_shot=None,
        confusion=(),
        next_shot=None,
        temperature=calibrate(zero_scores, shots.y) if advice.method == "zero_shot" else 1.0,
        threshold=0.0,
        set_threshold=None,
        suspects=(),
        left_out=None,
    )
