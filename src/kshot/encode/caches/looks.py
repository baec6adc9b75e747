"""What a reader should know about imported features before trusting them: measured, never corrected."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import class_counts, class_means, row_blocks, squared_norms, unit_rows
from kshot.types import Array, Labelled

SAME_ROW = 0.999
# Means over augmented views scatter about 20 % less than single crops; two halves of one set differ by below 10 %.
AVERAGED = 0.9
MOST_PRODUCTS = 10**11
ENOUGH_ROWS = 20_000


def shared_rows(pool: Float[Array, "N d"], test: Float[Array, "n d"]) -> tuple[int, int]:
    """How many test rows have (nearly) the same row in the pool, and of how many that were compared."""
    step = max(1, -(-pool.size * len(test) // MOST_PRODUCTS))
    compared = unit_rows(test[::step], "test")
    nearest = np.full(len(compared), -1.0, np.float32)
    for rows in row_blocks(len(pool)):
        block = unit_rows(pool[rows], "pool")
        np.maximum(nearest, (compared @ block.T).max(axis=1), out=nearest)
    return int(np.count_nonzero(nearest > SAME_ROW)), len(compared)


def scatter(part: Labelled) -> float:
    """Mean squared distance of unit rows to their class mean, unbiased; of every n-th row where there are many."""
    step = max(1, len(part.y) // ENOUGH_ROWS)
    X = unit_rows(part.X[::step], "features")
    present, y = np.unique(part.y[::step], return_inverse=True)
    means, counts = class_means(X, y, len(present)), class_counts(y, len(present))
    between = float(counts @ squared_norms(means))
    return (len(X) - between) / max(1, len(X) - len(present))


def zero_shot(test: Labelled, text: Float[Array, "C d"]) -> float:
    """Per cent of test rows whose nearest prototype is their own class's."""
    T = unit_rows(text, "text")
    right = sum(
        np.count_nonzero((np.asarray(test.X[rows], np.float32) @ T.T).argmax(axis=1) == test.y[rows])
        for rows in row_blocks(len(test.y))
    )
    return 100 * right / len(test.y)
