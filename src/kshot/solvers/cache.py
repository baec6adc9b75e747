"""Tip-Adapter's cache of shots: its channels, its layout, its scores, and the grid of alpha and beta.

APE's choice of channels and weights of keys (Zhu et al., 2023, Eqs. 3–9 as coded).

Tip-Adapter's key–value cache (Zhang et al., 2022): class sums of exp(−beta(1 − x·key)).

Keys are laid out shot by shot (K, C), short classes padded with keys that never match, so that the sum over
a class's keys is K additions of whole rows instead of a product with a one-hot matrix. A search computes the
affinities once, one exponential per beta, and serves all alphas from it; classes that cannot win are left out of it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.ratio_sweep import right_by_weight
from kshot.solvers.rows import class_counts, class_sums, row_blocks, shot_numbers
from kshot.solvers.training import adamw, softmax_residual, training_steps
from kshot.types import Array

SMALLEST = 1e-6


def refined_channels(
    keys: Float[Array, "N d"],
    y: Int[Array, " N"],
    text: Float[Array, "C d"],
    kept: int,
    similarity_weight: float,
    variance_weight: float,
) -> Int[Array, " Q"]:
    """The channels in which classes are least alike and texts vary most, in their own order."""
    merit = variance_weight * text.var(axis=0, ddof=1) - similarity_weight * class_similarity(keys, y, text)
    return np.sort(np.argsort(-merit, kind="stable")[:kept])


def class_similarity(keys: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"]) -> Float[Array, " d"]:
    """Per channel, the mean product over all pairs of vectors (texts and keys) of different classes."""
    sums = text + class_sums(keys, y, len(text))
    sizes = class_counts(y, len(text)) + 1
    pairs = int(sizes.sum()) ** 2 - int((sizes**2).sum())
    return (sums.sum(axis=0) ** 2 - (sums**2).sum(axis=0)) / pairs


def key_divergence(keys: Float[Array, "N e"], y: Int[Array, " N"], text: Float[Array, "C e"]) -> Float[Array, " N"]:
    """D_j = log2(1/q_j), q_j the softmax of key j's cosines to the texts at its own class; no logit scale."""
    from scipy.special import softmax

    own = softmax(keys @ text.T, axis=1)[np.arange(len(y)), y]
    return np.log2((1 + SMALLEST) / (own + SMALLEST)).astype(keys.dtype)


# A block of affinities stays in the cache while every beta passes over it; a slab of distances is one product's output.
BLOCK_BYTES, SLAB_BYTES = 512 * 1024, 16 * 1024**2


def search_grid(scale: float, points: int) -> Float[Array, " L"]:
    """0.1 + i·(scale − 0.1)/points for i < points; the end is left out, as in the official code."""
    return 0.1 + np.arange(points) * (scale - 0.1) / points


def lay_out(
    keys: Float[Array, "N d"], y: Int[Array, " N"], n_classes: int
) -> tuple[Float[Array, "K C d"], Bool[Array, "K C"], Int[Array, " N"]]:
    """Keys as (shot, class), which places are filled, and the shot number of every row."""
    shot = shot_numbers(y)
    table = np.zeros((shot.max() + 1, n_classes, keys.shape[1]), keys.dtype)
    filled = np.zeros(table.shape[:2], bool)
    table[shot, y], filled[shot, y] = keys, True
    return table, filled, shot


def cache_scores(
    X: Float[Array, "n d"],
    table: Float[Array, "K C d"],
    filled: Bool[Array, "K C"],
    beta: float,
    weights: Float[Array, "K C"] | None = None,
) -> Float[Array, "n C"]:
    """Class sums of the keys' affinities, each key counted `weights` times."""
    scores = np.empty((len(X), table.shape[1]), X.dtype)
    for here, distance in _negative_distances(X, table, filled):
        distance *= beta
        scores[here] = _class_sums(np.exp(distance, out=distance), weights)
    return scores


def search_hits(
    X: Float[Array, "n d"],
    y: Int[Array, " n"],
    scaled_text: Float[Array, "C d"],
    table: Float[Array, "K C d"],
    filled: Bool[Array, "K C"],
    betas: Float[Array, " Lb"],
    alphas: Float[Array, " La"],
    own_shot: Int[Array, " n"] | None = None,
) -> Int[Array, "Lb La"]:
    """Correct rows at every (beta, alpha), all positive; `own_shot` leaves each row's own key out of the cache."""
    hits = np.zeros((len(betas), len(alphas)), np.int64)
    base = X @ scaled_text.T
    for together, distances in _negative_distances(X, table, filled, SLAB_BYTES, own_shot, y):
        can_win = contenders(base[together], distances, betas.min())
        counts = np.count_nonzero(can_win, axis=1)
        alone = counts == 1
        hits += np.count_nonzero(can_win[alone, y[together][alone]])
        # Rows with about as many contenders go through the grid together.
        order = np.argsort(counts)[np.count_nonzero(alone) :]
        while len(order):
            most = max(1, BLOCK_BYTES // (X.itemsize * len(table) * counts[order[-1]]))
            order, rows = order[:-most], order[-most:]
            # In the order of the classes, so that the first of equals is found; the others only fill up.
            classes = np.argsort(~can_win[rows], axis=1, kind="stable")[:, : counts[rows].max()]
            distance = np.take_along_axis(distances[rows], classes[:, None], axis=2)
            scores = np.take_along_axis(base[together][rows], classes, axis=1)
            own = classes == y[together][rows][:, None]
            labels = np.where(own.any(axis=1), own.argmax(axis=1), -1)
            hits += _grid_hits(scores, labels, distance, betas, alphas, [None])[:, :, 0]
    return hits


def contenders(base: Float[Array, "b C"], distance: Float[Array, "b K C"], least_beta: float) -> Bool[Array, "b C"]:
    """Classes that may win base + alpha·(sum over keys of exp(beta·distance)) at some alpha and beta ≥ `least_beta`.

    By Jensen's inequality that sum is at least K·exp(beta·mean) and at most K·exp(beta·largest): a class whose largest
    is below the mean of a class with higher base loses to it at every alpha and beta. Both margins exceed what rounding
    can make of either side, so that no tie is decided here.
    """
    eps, shots = float(np.finfo(base.dtype).eps), distance.shape[1]
    margin = (4 * (shots + 4) / least_beta + 64) * eps
    gap = 16 * eps * np.abs(base).max(initial=0)
    falling = np.argsort(-base, axis=1)
    sorted_base = np.take_along_axis(base, falling, axis=1)
    # A class that lacks a key has the mean −inf.
    means = np.take_along_axis(distance.mean(axis=1), falling, axis=1)
    largest = np.take_along_axis(distance.max(axis=1), falling, axis=1)
    beaten = np.maximum.accumulate(means, axis=1)[:, :-1] > largest[:, 1:] + margin
    beaten &= sorted_base[:, :-1] - sorted_base[:, 1:] > gap
    can_win = np.ones(base.shape, bool)
    np.put_along_axis(can_win, falling[:, 1:], ~beaten, axis=1)
    return can_win


def weighted_search_hits(
    X: Float[Array, "n e"],
    y: Int[Array, " n"],
    base: Float[Array, "n C"],
    table: Float[Array, "K C e"],
    filled: Bool[Array, "K C"],
    betas: Float[Array, " Lb"],
    alphas: Float[Array, " La"],
    weights: Sequence[Float[Array, "K C"] | None],
    own_shot: Int[Array, " n"] | None = None,
) -> Int[Array, "Lb La Lg"]:
    """Correct rows of base + alpha·cache at every beta, alpha and weighting of the keys."""
    hits = np.zeros((len(betas), len(alphas), len(weights)), np.int64)
    for here, distance in _negative_distances(X, table, filled, BLOCK_BYTES, own_shot, y):
        hits += _grid_hits(base[here], y[here], distance, betas, alphas, weights)
    return hits


def _grid_hits(
    base: Float[Array, "b C"],
    y: Int[Array, " b"],
    distance: Float[Array, "b K C"],
    betas: Float[Array, " Lb"],
    alphas: Float[Array, " La"],
    weights: Sequence[Float[Array, "K C"] | None],
) -> Int[Array, "Lb La Lg"]:
    hits = np.zeros((len(betas), len(alphas), len(weights)), np.int64)
    repeated, labels = np.tile(base, (len(weights), 1)), np.tile(y, len(weights))
    affinity = np.empty_like(distance)
    for index, beta in enumerate(betas.tolist()):
        np.multiply(distance, beta, out=affinity)
        np.exp(affinity, out=affinity)
        cache = np.concatenate([_class_sums(affinity, weighting) for weighting in weights])
        right = right_by_weight(repeated, cache, alphas, labels)
        hits[index] = np.count_nonzero(right.reshape(len(alphas), len(weights), -1), axis=2)
    return hits


def _class_sums(affinity: Float[Array, "b K C"], weights: Float[Array, "K C"] | None) -> Float[Array, "b C"]:
    return affinity.sum(axis=1) if weights is None else np.einsum("bkc,kc->bc", affinity, weights)


def _negative_distances(
    X: Float[Array, "n d"],
    table: Float[Array, "K C d"],
    filled: Bool[Array, "K C"],
    most_bytes: int = BLOCK_BYTES,
    own_shot: Int[Array, " n"] | None = None,
    y: Int[Array, " n"] | None = None,
) -> Iterator[tuple[slice, Float[Array, "b K C"]]]:
    """x·key − 1 in blocks of rows of so many bytes; −inf where there is no key, or the row's own."""
    keys = table.reshape(-1, table.shape[2])
    block = max(1, most_bytes // (X.itemsize * len(keys)))
    for here in row_blocks(len(X), block):
        distance = (X[here] @ keys.T).reshape(-1, *filled.shape)
        distance -= 1
        distance[:, ~filled] = -np.inf
        if own_shot is not None and y is not None:
            distance[np.arange(len(distance)), own_shot[here], y[here]] = -np.inf
        yield here, distance


def train_keys(
    table: Float[Array, "K C d"],
    filled: Bool[Array, "K C"],
    views: Sequence[Float[Array, "N d"]],
    y: Int[Array, " N"],
    text: Float[Array, "C d"],
    steps: Iterator[Int[Array, " b"] | None],
    rates: Float[Array, " T"],
    *,
    steps_per_epoch: int,
    alpha: float,
    beta: float,
    scale: float,
    eps: float,
    weight_decay: float,
) -> Iterator[Float[Array, "K C d"]]:
    """Tip-Adapter-F: the keys after every step, always the same array; epoch e learns from view e mod V.

    With A = exp(−beta(1 − X·Kᵀ)) the logits are tau·X·Tᵀ + alpha·(A summed over each class's keys), and with
    R = (softmax − Y)/|b| the gradient is alpha·beta·(A ⊙ R[:, y])ᵀ·X. In the layout (shot, class) the class sum and
    R[:, y] are a sum and a repetition along the shots. Empty places have A = 0 and never move.
    """
    keys = table.copy()
    flat = keys.reshape(-1, keys.shape[2])
    update = adamw([flat], eps=eps, weight_decay=weight_decay)
    empty = ~filled
    for X, labels, rate in training_steps(views, y, steps, rates, steps_per_epoch):
        affinity = (X @ flat.T).reshape(len(X), *filled.shape)
        affinity -= 1
        affinity *= beta
        np.exp(affinity, out=affinity)
        affinity[:, empty] = 0
        residual = scale * (X @ text.T)
        residual += alpha * affinity.sum(axis=1)
        softmax_residual(residual, labels, alpha * beta / len(labels))
        affinity *= residual[:, None]
        update([affinity.reshape(len(X), -1).T @ X], rate)
        yield keys
