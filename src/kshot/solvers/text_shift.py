"""SS-Text's closed form: text prototypes moved by the sums of the shots, and their repulsion.

Silva-Rodríguez et al. solve min over p_c of −mean_i <x_i, p_y>·tau + ½·sum_c lambda_c·|p_c − t_c|², which is
p_c = t_c + tau·S_c/(N·lambda_c) with S_c the sum of the class's shots.
"""

import numpy as np
from jaxtyping import Float, Int

from kshot.solvers.rows import class_counts, class_sums, squared_norms
from kshot.types import Array

SMALLEST_PENALTY = 1e-3


def penalties(y: Int[Array, " N"], n_classes: int, *, own_count: bool) -> Float[Array, " C"]:
    """lambda_c: 1/N for all classes, or 1/n_c, which is infinite for a class without shots; at least 1e-3."""
    counts = class_counts(y, n_classes) if own_count else np.full(n_classes, len(y))
    with np.errstate(divide="ignore"):
        return np.maximum(1 / counts, SMALLEST_PENALTY)


def pulled_prototypes(
    X: Float[Array, "N d"], y: Int[Array, " N"], text: Float[Array, "C d"], penalty: Float[Array, " C"], scale: float
) -> Float[Array, "C d"]:
    weights = (scale / (len(y) * penalty)).astype(text.dtype)
    return text + weights[:, None] * class_sums(X, y, len(text))


def repelled(prototypes: Float[Array, "C d"]) -> tuple[Float[Array, "C d"], Float[Array, " C"]]:
    """p_c − unit(2·p_c − mean p), and the lengths |2·p_c − mean p|.

    With p_c = m + r_c the result is m(1 − 1/n_c) + r_c(1 − 2/n_c), n_c that length: below 2 the part that
    belongs to the class changes sign, and the classifier is turned over.
    """
    directions = 2 * prototypes - prototypes.mean(axis=0)
    lengths = np.sqrt(squared_norms(directions))
    return prototypes - directions / np.where(lengths > 0, lengths, 1)[:, None], lengths
