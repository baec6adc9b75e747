"""Accuracy of p_c(λ) = λ·mu_c + (1−λ)·t_c at many ratios for the price of two matrix products.

With A = X·Muᵀ and B = X·Tᵀ the cosine to the blended prototype is

    S_ic(λ) = (λ·A + (1−λ)·B)_ic / |λ·mu_c + (1−λ)·t_c|

(paper, Eq. "quad"), so a grid costs elementwise work only. That work runs over blocks of rows small enough
to stay in the cache, which is what makes it several times faster than passing over whole matrices.
"""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import row_blocks, squared_norms
from kshot.types import Array

GRID = np.arange(101) / 100
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


def deflated_means(
    X: Float[Array, "N d"], y: Int[Array, " N"], means: Float[Array, "C d"], counts: Int[Array, " C"]
) -> Float[Array, "N d"]:
    """Row i's own class mean without row i; a class of one shot keeps its mean."""
    n = counts[y].astype(X.dtype)[:, None]
    left = means[y]
    left *= n
    left -= X
    left /= np.maximum(n - 1, 1)
    alone = n[:, 0] == 1
    left[alone] = means[y[alone]]
    return left


def held_out_scores(
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    means: Float[Array, "C d"],
    text: Float[Array, "C d"],
    counts: Int[Array, " C"],
    grid: Float[Array, " L"] = GRID,
) -> Float[Array, "N L"]:
    """Each shot's cosine to its own class at every ratio, its own class mean deflated."""
    held_out = deflated_means(X, y, means, counts)
    lam = grid.astype(X.dtype)
    own_image = np.einsum("ij,ij->i", X, held_out)[:, None]
    own_text = np.einsum("ij,ij->i", X, text[y])[:, None]
    return (lam * own_image + (1 - lam) * own_text) * inverse_blend_norms(held_out, text[y], grid).T


def leave_one_out_predictions(
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    means: Float[Array, "C d"],
    text: Float[Array, "C d"],
    counts: Int[Array, " C"],
    grid: Float[Array, " L"] = GRID,
) -> Int[Array, "L N"]:
    """What each ratio predicts for each shot when its own class mean is deflated (paper, Algorithm 1)."""
    return sweep_predictions(X, means, text, grid, (y, held_out_scores(X, y, means, text, counts, grid)))


def accuracy_curve(predicted: Int[Array, "L N"], y: Int[Array, " N"]) -> Float[Array, " L"]:
    return np.count_nonzero(predicted == y, axis=1) / len(y)
