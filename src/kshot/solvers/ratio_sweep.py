"""Accuracy of p_c(λ) = λ·mu_c + (1−λ)·t_c at many ratios for the price of two matrix products.

With A = X·Muᵀ and B = X·Tᵀ the cosine to the blended prototype is

    S_ic(λ) = (λ·A + (1−λ)·B)_ic / |λ·mu_c + (1−λ)·t_c|

(paper, Eq. "quad"), so a grid costs elementwise work only. That work runs over blocks of rows small enough
to stay in the cache, which is what makes it several times faster than passing over whole matrices.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.rows import row_blocks, squared_norms
from kshot.types import Array

GRID = np.arange(101) / 100
# A block of scores stays in the cache while every ratio or weight passes over it.
BLOCK_BYTES = 192 * 1024


def inverse_blend_norms(
    means: Float[Array, "C d"], text: Float[Array, "C d"], grid: Float[Array, " L"]
) -> Float[Array, "L C"]:
    """1/|λ·mu_c + (1−λ)·t_c|; a blend of zero length gets 0, so its score is 0 and not NaN."""
    m2, mt, t2 = squared_norms(means), np.einsum("ij,ij->i", means, text), squared_norms(text)
    lam = grid.astype(means.dtype)[:, None]
    squared = lam**2 * m2 + 2 * lam * (1 - lam) * mt + (1 - lam) ** 2 * t2
    smallest = np.finfo(means.dtype).eps ** 2
    return np.where(squared > smallest, 1 / np.sqrt(np.maximum(squared, smallest)), 0).astype(means.dtype)


def sweep_predictions(
    X: Float[Array, "N d"],
    means: Float[Array, "C d"],
    text: Float[Array, "C d"],
    grid: Float[Array, " L"] = GRID,
    own_class: tuple[Int[Array, " N"], Float[Array, "N L"]] | None = None,
) -> Int[Array, "L N"]:
    """The class each ratio predicts for each row.

    `own_class` = (labels, scores) replaces the score of row i's own class at every ratio: leave-one-out.
    """
    inverse = inverse_blend_norms(means, text, grid)
    lambdas = grid.astype(X.dtype)
    predicted = np.empty((len(grid), len(X)), np.int32)
    block = max(1, BLOCK_BYTES // (X.itemsize * len(means)))
    slab = block * max(1, 1024 // block)
    scratch = np.empty((block, len(means)), X.dtype)
    for together in row_blocks(len(X), slab):
        image_scores = X[together] @ means.T
        text_scores = X[together] @ text.T
        image_scores -= text_scores
        for part in row_blocks(len(image_scores), block):
            difference, base = image_scores[part], text_scores[part]
            here = slice(together.start + part.start, together.start + part.stop)
            rows, scores = np.arange(len(base)), scratch[: len(base)]
            for index, lam in enumerate(lambdas):
                np.multiply(difference, lam, out=scores)
                scores += base
                scores *= inverse[index]
                if own_class is not None:
                    scores[rows, own_class[0][here]] = own_class[1][here, index]
                predicted[index, here] = scores.argmax(axis=1)
    return predicted


def deflated_means(X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"]) -> Float[Array, "N d"]:
    """Row i's own class mean without row i; a class of one shot keeps its mean."""
    n = np.bincount(y)[y].astype(X.dtype)[:, None]
    left = means[y]
    left *= n
    left -= X
    left /= np.maximum(n - 1, 1)
    alone = n[:, 0] == 1
    left[alone] = means[y[alone]]
    return left


def held_out_scores(
    X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"], text: Float[Array, "C d"]
) -> Float[Array, "N L"]:
    """Each shot's cosine to its own class at every ratio of GRID, its own class mean deflated."""
    held_out = deflated_means(X, y, means)
    lam = GRID.astype(X.dtype)
    own_image = np.einsum("ij,ij->i", X, held_out)[:, None]
    own_text = np.einsum("ij,ij->i", X, text[y])[:, None]
    return (lam * own_image + (1 - lam) * own_text) * inverse_blend_norms(held_out, text[y], GRID).T


def leave_one_out_predictions(
    X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"], text: Float[Array, "C d"]
) -> Int[Array, "L N"]:
    """What each ratio of GRID predicts for each shot when its own class mean is deflated (paper, Algorithm 1)."""
    return sweep_predictions(X, means, text, own_class=(y, held_out_scores(X, y, means, text)))


def accuracy_curve(predicted: Int[Array, "L N"], y: Int[Array, " N"]) -> Float[Array, " L"]:
    return np.count_nonzero(predicted == y, axis=1) / len(y)


def hits_by_weight(
    base: Float[Array, "n C"], extra: Float[Array, "n C"], weights: Float[Array, " L"], y: Int[Array, " n"]
) -> Int[Array, " L"]:
    """How many rows each weight w > 0 classifies correctly; the first of equal scores wins."""
    return np.count_nonzero(right_by_weight(base, extra, weights, y), axis=1)


def right_by_weight(
    base: Float[Array, "n C"], extra: Float[Array, "n C"], weights: Float[Array, " L"], y: Int[Array, " n"]
) -> Bool[Array, "L n"]:
    """Which rows each weight w > 0 classifies correctly.

    A row whose two scores agree on the class has that class at every weight.
    """
    first = base.argmax(axis=1)
    undecided = first != extra.argmax(axis=1)
    right = np.repeat((first == y)[None], len(weights), axis=0)
    if undecided.any():
        right[:, undecided] = _right_one_by_one(base[undecided], extra[undecided], weights, y[undecided])
    return right


def _right_one_by_one(
    base: Float[Array, "n C"], extra: Float[Array, "n C"], weights: Float[Array, " L"], y: Int[Array, " n"]
) -> Bool[Array, "L n"]:
    block = max(1, BLOCK_BYTES // (base.itemsize * base.shape[1]))
    scratch = np.empty((min(block, len(base)), base.shape[1]), base.dtype)
    right = np.empty((len(weights), len(y)), bool)
    for here in row_blocks(len(base), block):
        scores = scratch[: len(y[here])]
        for index, weight in enumerate(weights.tolist()):
            np.multiply(extra[here], weight, out=scores)
            scores += base[here]
            right[index, here] = scores.argmax(axis=1) == y[here]
    return right


def winning_range(
    base: Float[Array, "n C"], extra: Float[Array, "n C"], y: Int[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The open interval of weights w > 0 at which base + w·extra puts class y first (empty: low ≥ high).

    Beating class c is w·(extra_y − extra_c) > base_c − base_y, a half-line; their intersection is an
    interval, so one pass serves all weights.
    """
    here = np.arange(len(y))
    gap = base - base[here, y][:, None]
    gain = extra[here, y][:, None] - extra
    tiny = np.finfo(base.dtype).tiny
    np.copyto(gain, tiny, where=gain == 0)
    with np.errstate(over="ignore"):
        gap /= gain
    rising = gain > 0
    low = np.where(rising, gap, -np.inf).max(axis=1)
    high = np.where(rising, np.inf, gap).min(axis=1)
    return low, high


def wins_by_weight(low: Float[Array, " n"], high: Float[Array, " n"], weights: Float[Array, " L"]) -> Int[Array, " L"]:
    """How many of the intervals hold each weight."""
    return np.count_nonzero((low[:, None] < weights) & (weights < high[:, None]), axis=0)
