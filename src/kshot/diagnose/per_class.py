"""One ratio per class: what it could gain on the labels it is fitted to, and what is left on others."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from kshot.diagnose.ratios import blend_accuracy, oracle_ratio
from kshot.diagnose.section import Row
from kshot.methods.blending import blend
from kshot.solvers.ratio_sweep import GRID, inverse_blend_norms, leave_one_out_predictions
from kshot.solvers.rows import class_counts, class_means
from kshot.types import Array, Labelled

SWEEPS = 10


def coordinate_ascent(
    test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"], start: Float[Array, " C"]
) -> tuple[Float[Array, " C"], float]:
    """Ratios and accuracy after moving one class at a time to its best grid point, until none moves.

    Only column c of the scores depends on λ_c, so a row is right when its own score beats the best of the
    others, or when the best of the others is right and class c stays below it. Ties count as wrong.
    """
    image, words = test.X @ means.T, test.X @ text.T
    norms = inverse_blend_norms(means, text, GRID)
    ratios = start.astype(np.float64).copy()
    scores = test.X @ blend(means, text, ratios.astype(means.dtype)).T
    rows = np.arange(len(test.y))
    for _ in range(SWEEPS):
        moved = False
        for c in range(len(means)):
            scores[:, c] = -np.inf
            rival = scores.argmax(axis=1)
            best_other = scores[rows, rival]
            column = _column(image[:, c], words[:, c], norms[:, c])
            own = test.y == c
            held = (rival == test.y) & ~own
            hits = np.count_nonzero(column[own] > best_other[own, None], axis=0)
            hits += np.count_nonzero(column[held] < best_other[held, None], axis=0)
            current = int(np.abs(GRID - ratios[c]).argmin())
            choice = int(hits.argmax())
            if hits[choice] > hits[current]:
                ratios[c], current, moved = GRID[choice], choice, True
            scores[:, c] = column[:, current]
        if not moved:
            break
    return ratios, float(np.mean(scores.argmax(axis=1) == test.y))


def per_class_oracle(
    test: Labelled,
    means: Float[Array, "C d"],
    text: Float[Array, "C d"],
    starts: Sequence[float] = (0.0, 1.0),
) -> tuple[Float[Array, " C"], float]:
    """The best of several starts, the global oracle ratio among them: never below the global oracle."""
    first = oracle_ratio(test, means, text)[0]
    runs = [coordinate_ascent(test, means, text, np.full(len(means), s)) for s in (first, *starts)]
    return max(runs, key=lambda run: run[1])


def per_class_loo(support: Labelled, text: Float[Array, "C d"]) -> Float[Array, " C"]:
    """Each class takes the ratio that its own held-out shots prefer: K votes for one knob (study, Sec. 4.1)."""
    n_classes = len(text)
    means, counts = class_means(support.X, support.y, n_classes), class_counts(support.y, n_classes)
    hits = leave_one_out_predictions(support.X, support.y, means, text, counts) == support.y
    return np.array([GRID[hits[:, support.y == c].sum(axis=1).argmax()] for c in range(n_classes)])


def halves(y: Int[Array, " n"], seed: int = 0) -> tuple[Int[Array, " a"], Int[Array, " b"]]:
    """Two halves of the test set with the same share of every class."""
    shuffled = np.random.default_rng(seed).permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    return np.sort(by_class[::2]), np.sort(by_class[1::2])


def per_class_row(support: Labelled, test: Labelled, text: Float[Array, "C d"]) -> Row:
    """Gains over one global ratio, in points: in sample, fitted on one half and scored on the other, and LOO."""
    means = class_means(support.X, support.y, len(text))
    whole = oracle_ratio(test, means, text)[1]
    in_sample = per_class_oracle(test, means, text)[1]
    out = []
    first, second = halves(test.y)
    for fitted, scored in ((first, second), (second, first)):
        fit_on, score_on = (Labelled(test.X[rows], test.y[rows]) for rows in (fitted, scored))
        ratios = per_class_oracle(fit_on, means, text)[0]
        one_ratio = oracle_ratio(score_on, means, text)[1]
        out.append(blend_accuracy(score_on, means, text, ratios) - one_ratio)
    loo = blend_accuracy(test, means, text, per_class_loo(support, text))
    return {
        "one ratio": 100 * whole,
        "in sample": 100 * (in_sample - whole),
        "split half": float(100 * np.mean(out)),
        "per-class LOO": 100 * (loo - whole),
    }


def _column(
    image: Float[Array, " n"], words: Float[Array, " n"], norms: Float[Array, " L"]
) -> Float[Array, "n L"]:
    lam = GRID.astype(image.dtype)
    return (np.outer(image, lam) + np.outer(words, 1 - lam)) * norms
