"""The blending ratio as a knob: the grid and both curves, shared by its honest choice and its oracle."""

from collections.abc import Sequence

from jaxtyping import Float

from kshot.methods.evidence import Task
from kshot.solvers.ratio_sweep import GRID, accuracy_curve, leave_one_out_predictions, sweep_predictions
from kshot.types import Array, Labelled


class RatioKnob:
    """101 ratios from 0 to 1; a tie takes the smallest."""

    def knob_name(self) -> str:
        return "lambda"

    def knob_grid(self) -> Sequence[float]:
        return GRID.tolist()

    def knob_curve(self, task: Task, queries: Labelled) -> Float[Array, " L"]:
        return accuracy_curve(sweep_predictions(queries.X, task.means, task.text), queries.y)

    def knob_loo_curve(self, task: Task) -> Float[Array, " L"]:
        predicted = leave_one_out_predictions(task.X, task.y, task.means, task.text, task.counts)
        return accuracy_curve(predicted, task.y)
