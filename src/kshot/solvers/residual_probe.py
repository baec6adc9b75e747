"""TaskRes' trajectory (Yu et al., 2023): Adam on a residual added to the text prototypes.

With w_c = a_c + alpha·x_c, U = W/|W|, S = X·Uᵀ and R = tau·(softmax(tau·S) − Y)/|b| the gradient of x_c is
alpha·(RᵀX − (sum_i R_ic S_ic)·U_c)/|w_c|, and as sum_i R_ic S_ic = (RᵀX)_c·U_c no product with S is needed.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import squared_norms
from kshot.solvers.training import adam, softmax_residual, training_steps
from kshot.types import Array


def train_residual(
    views: Sequence[Float[Array, "N d"]],
    y: Int[Array, " N"],
    base: Float[Array, "C d"],
    steps: Iterator[Int[Array, " b"] | None],
    rates: Float[Array, " T"],
    *,
    steps_per_epoch: int,
    alpha: float,
    scale: float,
    weight_decay: float,
) -> Iterator[Float[Array, "C d"]]:
    """The residual after every step, always the same array; epoch e learns from view e mod V."""
    residual, gradient = np.zeros_like(base), np.empty_like(base)
    update = adam([residual], weight_decay=weight_decay)
    directions, scratch = np.empty_like(base), np.empty_like(base)
    for X, labels, rate in training_steps(views, y, steps, rates, steps_per_epoch):
        np.multiply(residual, alpha, out=directions)
        directions += base
        inverse = 1 / np.sqrt(squared_norms(directions))[:, None]
        directions *= inverse
        errors = X @ np.multiply(directions, scale, out=scratch).T
        softmax_residual(errors, labels, scale / len(labels))
        np.matmul(errors.T, X, out=gradient)
        radial = np.einsum("cd,cd->c", gradient, directions)[:, None]
        gradient -= np.multiply(directions, radial, out=scratch)
        gradient *= alpha * inverse
        update([gradient], rate)
        yield residual
