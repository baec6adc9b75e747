"""Where the two objectives put one ratio for all classes: least prototype error, and most accuracy."""

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import class_counts, class_means, squared_norms
from kshot.solvers.shrinkage import optimal_ratio, population_moments
from kshot.theory.probes.blend_scores import blend_accuracy, oracle_ratio
from kshot.theory.probes.section import Row
from kshot.types import Array, Labelled


def objectives_row(support: Labelled, residue: Labelled, test: Labelled, text: Float[Array, "C d"]) -> Row:
    """Both choices, and the accuracy that the first costs (paper, Fig. 1B). The error's minimum needs the mean over
    classes of g² and v alone, from outside the support."""
    shots = class_counts(support.y, len(text))
    means, trace = population_moments(residue.X, residue.y, len(text))
    g2, v = squared_norms(text - means).mean(), (trace / shots).mean()
    least_error = float(optimal_ratio(np.array([g2]), np.array([v]))[0])
    own = class_means(support.X, support.y, len(text))
    best, accuracy = oracle_ratio(test, own, text)
    at_least_error = blend_accuracy(test, own, text, np.full(len(text), least_error, text.dtype))
    return {
        "λ of least error": least_error,
        "λ of most accuracy": best,
        "accuracy lost": 100 * (accuracy - at_least_error),
    }
