"""Hits of base + w·extra at many weights w: two score matrices serve a whole grid."""

import numpy as np
from jaxtyping import Float, Int

from kshot.types import Array

BLOCK_BYTES = 256 * 1024


def hits_by_weight(
    base: Float[Array, "n C"], extra: Float[Array, "n C"], weights: Float[Array, " L"], y: Int[Array, " n"]
) -> Int[Array, " L"]:
    """How many rows each weight classifies correctly; the first of equal scores wins."""
    w = weights.astype(base.dtype)[:, None, None]
    block = max(1, BLOCK_BYTES // (base.itemsize * base.shape[1] * len(weights)))
    scratch = np.empty((len(weights), min(block, len(base)), base.shape[1]), base.dtype)
    hits = np.zeros(len(weights), np.int64)
    for low in range(0, len(base), block):
        here = slice(low, low + block)
        scores = scratch[:, : len(y[here])]
        np.multiply(extra[here], w, out=scores)
        scores += base[here]
        hits += np.count_nonzero(scores.argmax(axis=2) == y[here], axis=1)
    return hits
