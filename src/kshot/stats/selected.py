"""What methods share with reports: the names under which `selected_` keeps a blending ratio and an accuracy curve.

The *ratio* is the pictures' weight in a blend with text: a number, or a summary over classes with a `mean`. A *curve*
is the accuracy at every value of a knob, as seen by the evidence that chooses. A ratio's *grid* is evenly spaced from 0
to 1, with as many points as the curve.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from kshot.errors import StudyError, unknown
from kshot.types import CELL, Array

if TYPE_CHECKING:
    import pyarrow as pa

    from kshot.stats.panel import Panel

RATIO = "lambda"


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


def curves(panel: "Panel", method: str) -> "pa.Table":
    """The kept accuracy curve of a method's ratio, one row a cell and value of the ratio."""
    import pyarrow as pa

    method = {"loo_lambda": "loo_blend"}.get(method, method)
    if method not in panel.methods:
        raise StudyError(unknown("method", method, panel.methods, "These are in the records."))
    rows: list[tuple] = []
    for cell, selected in zip(panel.cell_keys(), panel.selected(method), strict=True):
        values = next(filter(None, (ratio_curve(selected, evidence) for evidence in ("support", "test"))), [])
        rows += [(*cell, float(x), float(y)) for x, y in zip(ratio_grid(len(values)), values, strict=True)]
    if not rows:
        raise StudyError(f"{method} keeps no curve of a ratio; loo_blend and oracle_lambda do.")
    return pa.table(dict(zip((*CELL, RATIO, "accuracy"), map(list, zip(*rows, strict=True)), strict=True)))


def ratio_grid(points: int) -> Float[Array, " L"]:
    return np.linspace(0, 1, points)
