"""One ratio per class: the gain on the labels it is fitted to, and on others."""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.ratio_sweep import (
    GRID,
    accuracy_curve,
    held_out_scores,
    inverse_blend_norms,
    leave_one_out_predictions,
)
from kshot.solvers.rows import class_counts, class_means
from kshot.theory.probes.ratio import blend_accuracy, oracle_ratio
from kshot.types import Array, Labelled

SWEEPS = 10


def coordinate_ascent(
    rows: Labelled,
    means: Float[Array, "C d"],
    text: Float[Array, "C d"],
    start: float,
    own_scores: Float[Array, "n L"] | None = None,
) -> tuple[Float[Array, " C"], float]:
    """Ratios and accuracy after moving one class at a time to its best grid point, until none moves.

    Only column c of the scores depends on λ_c, so a row is right when its own score beats the best of the
    others, or when the best of the others is right and class c stays below it. Ties count as wrong.
    `own_scores` replaces the score of each row's own class at every ratio: leave-one-out.
    """
    image, words = rows.X @ means.T, rows.X @ text.T
    norms = inverse_blend_norms(means, text, GRID)

    def column(c: int) -> Float[Array, "n L"]:
        lam = GRID.astype(image.dtype)
        scored = (np.outer(image[:, c], lam) + np.outer(words[:, c], 1 - lam)) * norms[:, c]
        if own_scores is not None:
            scored[rows.y == c] = own_scores[rows.y == c]
        return scored

    chosen = np.full(len(means), np.abs(GRID - start).argmin())
    scores = np.stack([column(c)[:, chosen[c]] for c in range(len(means))], axis=1)
    every_row = np.arange(len(rows.y))
    for _ in range(SWEEPS):
        before = chosen.copy()
        for c in range(len(means)):
            candidates = column(c)
            scores[:, c] = -np.inf
            rival = scores.argmax(axis=1)
            best_other = scores[every_row, rival]
            own = rows.y == c
            held = (rival == rows.y) & ~own
            hits = np.count_nonzero(candidates[own] > best_other[own, None], axis=0)
            hits += np.count_nonzero(candidates[held] < best_other[held, None], axis=0)
            best = int(hits.argmax())
            if hits[best] > hits[chosen[c]]:
                chosen[c] = best
            scores[:, c] = candidates[:, chosen[c]]
        if np.array_equal(chosen, before):
            break
    return GRID[chosen], float(np.mean(scores.argmax(axis=1) == rows.y))


def per_class_oracle(
    test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"]
) -> tuple[Float[Array, " C"], float]:
    """The best ascent from 0, 1 and the best single ratio, so that it is never below that ratio."""
    starts = (oracle_ratio(test, means, text)[0], 0.0, 1.0)
    runs = [coordinate_ascent(test, means, text, start) for start in starts]
    return max(runs, key=lambda run: run[1])


def per_class_loo(support: Labelled, text: Float[Array, "C d"]) -> Float[Array, " C"]:
    """One ratio per class from the support alone: ascent on leave-one-out accuracy from the best single ratio.

    K shots are too few to choose a ratio per class (paper, Sec. 4.1).
    """
    X, y, n_classes = support.X, support.y, len(text)
    means = class_means(X, y, n_classes)
    own = held_out_scores(X, y, means, text)
    return coordinate_ascent(support, means, text, leave_one_out_ratio(support, means, text), own)[0]


def leave_one_out_ratio(support: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"]) -> float:
    """The one ratio of Algorithm 1, the smallest of the best."""
    predicted = leave_one_out_predictions(support.X, support.y, means, text)
    return float(GRID[accuracy_curve(predicted, support.y).argmax()])


def halves(y: Int[Array, " n"], seed: int = 0) -> tuple[Int[Array, " a"], Int[Array, " b"]]:
    """Two halves of the test set with the same share of every class."""
    shuffled = np.random.default_rng(seed).permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    return np.sort(by_class[::2]), np.sort(by_class[1::2])


def per_class_row(support: Labelled, test: Labelled, text: Float[Array, "C d"]) -> dict[str, float]:
    """Gains over one global ratio, in points: in sample, fitted on one half and scored on the other, and by LOO."""
    means = class_means(support.X, support.y, len(text))
    whole = oracle_ratio(test, means, text)[1]
    in_sample = per_class_oracle(test, means, text)[1]
    gains, reached = [], []
    first, second = halves(test.y)
    for fitted, scored in ((first, second), (second, first)):
        fit_on, score_on = (Labelled(test.X[rows], test.y[rows]) for rows in (fitted, scored))
        ratios = per_class_oracle(fit_on, means, text)[0]
        one_ratio = oracle_ratio(score_on, means, text)[1]
        reached.append(blend_accuracy(score_on, means, text, ratios))
        gains.append(reached[-1] - one_ratio)
    return {
        "one ratio": 100 * whole,
        "in sample": 100 * (in_sample - whole),
        "split half": float(100 * np.mean(gains)),
        "accuracy on split halves": float(100 * np.mean(reached)),
    } | _leave_one_out(support, test, means, text)


def _leave_one_out(
    support: Labelled, test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"]
) -> dict[str, float]:
    """Points gained by one ratio per class over one for all, both chosen by leave-one-out; takes two shots."""
    if class_counts(support.y, len(text)).min() < 2:
        return {}
    shared = np.full(len(text), leave_one_out_ratio(support, means, text))
    own = blend_accuracy(test, means, text, per_class_loo(support, text))
    return {"per-class LOO": 100 * (own - blend_accuracy(test, means, text, shared))}
