"""Hits of base + w·extra at many weights w, from two score matrices."""

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.rows import row_blocks
from kshot.types import Array

# A block of scores stays in the cache while every weight passes over it.
BLOCK_BYTES = 256 * 1024


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
