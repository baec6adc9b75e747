"""What methods share with reports: the names under which `selected_` keeps a blending ratio and an accuracy curve.

The *ratio* is the pictures' weight in a blend with text: a number, or a summary over classes with a `mean`. A *curve*
is the accuracy at every value of a knob, as seen by the evidence that chooses. A ratio's *grid* is evenly spaced from 0
to 1, with as many points as the curve.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from kshot.types import Array

RATIO = "lambda"
# Flattened, the ratio is one of these, the first that a record has.
FLAT_RATIOS = (RATIO, f"{RATIO}.mean")


def curve_name(evidence: str) -> str:
    """`loo_accuracy` for leave-one-out on the shots, `accuracy` for labelled pictures."""
    return "loo_accuracy" if evidence == "support" else "accuracy"


def ratio_of(selected: Mapping[str, Any]) -> float:
    """The fitted ratio, its mean where every class has its own; NaN where there is none."""
    choice = selected.get(RATIO)
    choice = choice.get("mean") if isinstance(choice, Mapping) else choice
    return float(choice) if isinstance(choice, int | float) else float("nan")


def ratio_curve(selected: Mapping[str, Any], evidence: str) -> list[float] | None:
    """Accuracy over the grid of the ratio; None where the method has no ratio or kept no curve."""
    curve = selected.get(curve_name(evidence))
    return curve if RATIO in selected and isinstance(curve, list) else None


def ratio_grid(points: int) -> Float[Array, " L"]:
    return np.linspace(0, 1, points)
