"""Standard deviation of the James–Stein ratio over draws, measured and predicted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from kshot.solvers.rows import (
    class_counts,
    class_means,
    james_stein_ratio,
    mean_variances,
    optimal_ratio,
    population_moments,
    squared_norms,
)
from kshot.theory.sampling import (
    general_standard_error,
    isotropic_standard_error,
    participation_ratio,
    unbiased_trace_of_square,
)
from kshot.types import Array, Labelled


@dataclass(frozen=True)
class ClassMoments:
    """Moments of each class in the sampling law, estimated without bias from a pool."""

    g2: Float[Array, " C"]
    trace: Float[Array, " C"]
    trace_square: Float[Array, " C"]
    along: Float[Array, " C"]

    def participation(self) -> float:
        return float(np.median(participation_ratio(self.trace, self.trace_square)))


def class_moments(pool: Labelled, text: Float[Array, "C d"]) -> ClassMoments:
    """g², tr Sigma, tr Sigma² and bᵀSigma b per class; the error of the pool's mean is subtracted from g² and b."""
    X, y, text = pool.X.astype(np.float64), pool.y, text.astype(np.float64)
    counts = class_counts(y, len(text))
    means, trace = population_moments(X, y, len(text))
    bias, trace_square, along = text - means, np.empty(len(text)), np.empty(len(text))
    for c in range(len(text)):
        residuals = X[y == c] - means[c]
        trace_square[c] = unbiased_trace_of_square(residuals)
        along[c] = squared_norms((residuals @ bias[c])[None])[0] / (counts[c] - 1)
    # The unbiased estimates can fall below their bounds by chance: 0 ≤ g², (tr Sigma)²/d ≤ tr(Sigma²).
    floor = trace**2 / X.shape[1]
    trace_square = np.maximum(trace_square, floor)
    return ClassMoments(
        g2=np.maximum(squared_norms(bias) - trace / counts, 0),
        trace=trace,
        trace_square=trace_square,
        along=np.maximum(along - trace_square / counts, 0),
    )


def support_ratios(support: Labelled, text: Float[Array, "C d"]) -> Float[Array, " C"]:
    """The James–Stein ratio of each class from one draw."""
    means = class_means(support.X, support.y, len(text))
    return james_stein_ratio(mean_variances(support.X, support.y, means), squared_norms(text - means))


def measured_spread(supports: Sequence[Labelled], text: Float[Array, "C d"]) -> float:
    """Median over classes of the SD across draws (two or more)."""
    return float(np.median(np.std([support_ratios(s, text) for s in supports], axis=0, ddof=1)))


def predicted_row(moments: ClassMoments, d: int, shots: int) -> dict[str, float]:
    """Medians over classes of the SD that the pool predicts: for its covariance (Prop. 5), and as if isotropic (4)."""
    m = moments
    general = general_standard_error(m.g2, m.trace, m.trace_square, m.along, shots)
    isotropic = isotropic_standard_error(optimal_ratio(m.g2, m.trace / shots), d, shots)
    return {"predicted SD": float(np.median(general)), "isotropic SD": float(np.median(isotropic))}
