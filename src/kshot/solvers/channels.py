"""APE's choice of channels and weights of keys (Zhu et al., 2023, Eqs. 3–9 as coded)."""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import class_counts, class_sums
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
