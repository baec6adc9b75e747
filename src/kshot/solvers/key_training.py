"""Tip-Adapter-F's training (Zhang et al., 2022): the keys of the cache learn, text and labels stay.

With A = exp(−beta(1 − X·Kᵀ)) the logits are tau·X·Tᵀ + alpha·(A summed over each class's keys), and with
R = (softmax − Y)/|b| the gradient is alpha·beta·(A ⊙ R[:, y])ᵀ·X. In the layout (shot, class) of `solvers.cache`
the class sum and R[:, y] are a sum and a repetition along the shots. Empty places have A = 0 and never move.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from kshot.solvers.training import adamw, softmax_residual, training_steps
from kshot.types import Array


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
    """The keys after every step, always the same array; epoch e learns from view e mod V."""
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
