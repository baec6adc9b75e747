"""Tip-Adapter's key–value cache (Zhang et al., 2022): class sums of exp(−beta(1 − x·key)).

Keys are laid out shot by shot (K, C), short classes padded with keys that never match, so that the sum over
a class's keys is K additions of whole rows instead of a product with a one-hot matrix. A search computes the
affinities once, one exponential per beta, and serves all alphas from it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.rows import row_blocks, shot_numbers
from kshot.solvers.weight_sweep import right_by_weight
from kshot.types import Array

BLOCK_BYTES = 512 * 1024


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
    """Correct rows at every (beta, alpha); `own_shot` leaves each row's own key out of the cache."""
    return weighted_search_hits(
        X, y, X @ scaled_text.T, table, filled, betas, alphas, [None], own_shot=own_shot
    )[:, :, 0]


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
    for here, distance in _negative_distances(X, table, filled):
        labels = y[here]
        if own_shot is not None:
            distance[np.arange(len(labels)), own_shot[here], labels] = -np.inf
        repeated = np.tile(base[here], (len(weights), 1))
        affinity = np.empty_like(distance)
        for index, beta in enumerate(betas.tolist()):
            np.multiply(distance, beta, out=affinity)
            np.exp(affinity, out=affinity)
            cache = np.concatenate([_class_sums(affinity, weighting) for weighting in weights])
            right = right_by_weight(repeated, cache, alphas, np.tile(labels, len(weights)))
            hits[index] += np.count_nonzero(right.reshape(len(alphas), len(weights), -1), axis=2)
    return hits


def _class_sums(affinity: Float[Array, "b K C"], weights: Float[Array, "K C"] | None) -> Float[Array, "b C"]:
    return affinity.sum(axis=1) if weights is None else np.einsum("bkc,kc->bc", affinity, weights)


def _negative_distances(
    X: Float[Array, "n d"], table: Float[Array, "K C d"], filled: Bool[Array, "K C"]
) -> Iterator[tuple[slice, Float[Array, "b K C"]]]:
    """x·key − 1 in blocks of rows that fit the cache; −inf where there is no key."""
    keys = table.reshape(-1, table.shape[2])
    block = max(1, BLOCK_BYTES // (X.itemsize * len(keys)))
    for here in row_blocks(len(X), block):
        distance = (X[here] @ keys.T).reshape(-1, *filled.shape)
        distance -= 1
        distance[:, ~filled] = -np.inf
        yield here, distance
