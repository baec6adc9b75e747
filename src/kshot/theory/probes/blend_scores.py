"""Accuracy of blends as the probes need it."""

import numpy as np
from jaxtyping import Float

from kshot.methods.blending import blend
from kshot.solvers.ratio_sweep import GRID, accuracy_curve, sweep_predictions
from kshot.solvers.rows import unit_prototypes
from kshot.types import Array, Labelled


def oracle_ratio(test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"]) -> tuple[float, float]:
    """(ratio, accuracy) of the best point on the grid, chosen on the labels it is scored on."""
    curve = accuracy_curve(sweep_predictions(test.X, means, text), test.y)
    best = int(curve.argmax())
    return float(GRID[best]), float(curve[best])


def prototype_accuracy(test: Labelled, prototypes: Float[Array, "C d"]) -> float:
    """Accuracy of cosine scoring; the prototypes need not have unit length."""
    scores = test.X @ unit_prototypes(prototypes).T
    return float(np.mean(scores.argmax(axis=1) == test.y))


def blend_accuracy(
    test: Labelled, means: Float[Array, "C d"], text: Float[Array, "C d"], ratios: Float[Array, " C"]
) -> float:
    return prototype_accuracy(test, blend(means, text, ratios))
