"""Softmax: its losses, and scores turned into calibrated probabilities."""

import numpy as np
from jaxtyping import Float, Int

from kshot.types import Array


def exponentials(logits: Float[Array, "n C"], y: Int[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Replace logits by exp(logits − their maximum), in place; return cross-entropies and sums of the rows."""
    logits -= logits.max(axis=1, keepdims=True)
    own = logits[np.arange(len(y)), y]
    np.exp(logits, out=logits)
    total = logits.sum(axis=1)
    return np.log(total) - own, total


def losses_and_residuals(logits: Float[Array, "n C"], y: Int[Array, " n"]) -> Float[Array, " n"]:
    """Replace logits by probabilities minus one-hot labels, in place; return the cross-entropies."""
    losses, total = exponentials(logits, y)
    logits *= (1 / total)[:, None]
    logits[np.arange(len(y)), y] -= 1
    return losses


def calibrate(scores: Float[Array, "M C"], y: Int[Array, " M"]) -> float:
    """The temperature whose softmax gives left-out pictures the best likelihood.

    Labels are smoothed as if one more picture had been drawn from a random class; else scores without a mistake on a
    handful of pictures would have temperature 0.
    """
    from scipy.special import log_softmax

    smooth = 1 / (len(y) + 1)
    best, chosen = np.inf, 1.0
    for temperature in np.geomspace(1e-4, 1e3, 281):
        logs = log_softmax(scores.astype(np.float64) / temperature, axis=1)
        loss = -((1 - smooth) * logs[np.arange(len(y)), y] + smooth * logs.mean(axis=1)).mean()
        if loss < best:
            best, chosen = loss, float(temperature)
    return chosen


def in_range_of(scores: Float[Array, "n C"], reference: Float[Array, "n C"]) -> Float[Array, "n C"]:
    """Each picture's scores moved and stretched to the range of its reference logits (SaLS: Murugesan et al., Robust
    calibration of large vision-language adapters, ECCV 2024); the order of its classes stays."""
    low, high = (end(scores, axis=1, keepdims=True) for end in (np.min, np.max))
    least, most = (end(reference, axis=1, keepdims=True) for end in (np.min, np.max))
    width = np.where(high > low, high - low, 1)
    return least + (most - least) * (scores - low) / width
