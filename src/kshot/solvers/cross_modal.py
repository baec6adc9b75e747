"""A linear probe whose batches are half pictures, half texts (Lin et al., 2023), trained by AdamW."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.training import adamw, half_cosine, softmax_residual, training_steps
from kshot.types import Array

WARMUP_STEPS, FIRST_RATE = 50, 1e-5
# The processor of the official runs adds up so many numbers at a time, and one after another where there are fewer.
LANES = 16


def warm_cosine(iterations: int, peak: float) -> Float[Array, " iterations"]:
    """1e-5, then 49 linear steps towards `peak`, then half a cosine that starts anew and does not reach 0."""
    step = np.arange(iterations)
    later = half_cosine(step - WARMUP_STEPS, iterations, peak)
    rates = np.where(step < WARMUP_STEPS, peak * step / WARMUP_STEPS, later)
    rates[:1] = FIRST_RATE
    return rates


def half_sizes(images: int, texts: int, batch: int | None) -> tuple[int, int]:
    """How many pictures and texts a batch holds.

    32 in all, and 8 where half of that is not below both numbers (the official rule); where even four are too
    many, as many as there are.
    """
    half = (batch or (32 if min(images, texts) > 16 else 8)) // 2
    return min(half, images), min(half, texts)


def paired_batches(seed: int, images: int, texts: int, sizes: tuple[int, int]) -> Iterator[Int[Array, " b"]]:
    """Row numbers of the pictures, then of the texts (counted after the pictures), of every step.

    Either loader draws a new order when it is opened and whenever no whole batch is left; pictures come first.
    """
    generator = np.random.RandomState(seed)
    totals, starts = (images, texts), (0, images)
    orders = [generator.rand(total).argsort() for total in totals]
    places = [0, 0]
    while True:
        parts = []
        for which, size in enumerate(sizes):
            if places[which] + size > totals[which]:
                orders[which], places[which] = generator.rand(totals[which]).argsort(), 0
            parts.append(orders[which][places[which] : places[which] + size] + starts[which])
            places[which] += size
        yield np.concatenate(parts)


def train_cross_modal(
    X: Float[Array, "N d"],
    y: Int[Array, " N"],
    text: Float[Array, "C d"],
    steps: Iterator[Int[Array, " b"]],
    rates: Float[Array, " T"],
    *,
    scale: float,
    weight_decay: float,
) -> Iterator[Float[Array, "C d"]]:
    """The weights after every step, always the same array; they start at the text."""
    W, gradient = text.copy(), np.empty_like(text)
    update = adamw([W], weight_decay=weight_decay)
    samples = np.concatenate([X, text])
    labels = np.concatenate([y, np.arange(len(text))])
    for rows, own, rate in training_steps([samples], labels, steps, rates):
        errors = rows @ W.T
        errors *= scale
        # The factor comes last, and few classes are added in turn: Adam divides gradients that are tiny by tiny
        # numbers, and 12,800 steps remember how p − 1 was rounded.
        softmax_residual(errors, own, 1.0, in_turn=len(text) < LANES)
        errors *= scale / len(rows)
        np.matmul(errors.T, rows, out=gradient)
        update([gradient], rate)
        yield W
