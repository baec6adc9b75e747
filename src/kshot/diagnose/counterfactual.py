"""How much of what James–Stein loses would be saved if the common offset were not there."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from kshot.diagnose.precision import support_ratios
from kshot.diagnose.ratios import blend_accuracy, oracle_ratio
from kshot.diagnose.section import Row
from kshot.solvers.rows import class_means
from kshot.solvers.shrinkage import common_offset
from kshot.types import Array, Labelled


def deficit(support: Labelled, test: Labelled, text: Float[Array, "C d"]) -> float:
    """Accuracy of the James–Stein blend minus that of the oracle ratio, in points."""
    means = class_means(support.X, support.y, len(text))
    best = oracle_ratio(test, means, text)[1]
    return 100 * (blend_accuracy(test, means, text, support_ratios(support, text)) - best)


def counterfactual_row(
    draws: Sequence[tuple[Labelled, Labelled]], test: Labelled, text: Float[Array, "C d"]
) -> Row:
    """The deficit with the text as it is and with Delta subtracted, means over (support, residue) draws.

    Delta comes from the residue, never from the support.
    """
    deficits = []
    for support, residue in draws:
        offset = common_offset(class_means(residue.X, residue.y, len(text)), text)
        deficits.append((deficit(support, test, text), deficit(support, test, text - offset)))
    real, without = (float(value) for value in np.mean(deficits, axis=0))
    return {
        "deficit": real,
        "without offset": without,
        "recovered": without - real,
        "share of damage": (real - without) / real if real else float("nan"),
    }
