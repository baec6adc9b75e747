"""The answers that lie beside the records, read back for metrics."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from kshot.bench.record import cells_of
from kshot.bench.records import Records
from kshot.bench.study import Cell
from kshot.data.draw import class_shots
from kshot.stats.answers import Answers
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow as pa


def read_answers(records: Records, cell: Cell) -> Iterator[tuple[str, Answers]]:
    """Every method of the cell whose answers were kept."""
    for method, answers in records.answers(cell).items():
        yield method, replace(answers, unseen=_unseen(cell, answers.n_classes))


def metric_values(
    records: Records, table: "pa.Table", metrics: Mapping[str, Callable[[Answers], float]]
) -> dict[str, Float[Array, " N"]]:
    """Every metric of every record of the table, in its order; NaN where no answers of that very record were kept."""
    values = {name: np.full(table.num_rows, np.nan) for name in metrics}
    places: dict[Cell, dict[str, tuple[int, int | None]]] = {}
    columns = (cells_of(table), table["method"].to_pylist(), table["n_correct"].to_pylist())
    for row, (cell, method, correct) in enumerate(zip(*columns, strict=True)):
        places.setdefault(cell, {})[method] = row, correct
    for cell, methods in places.items():
        for method, answers in read_answers(records, cell):
            row, correct = methods.get(method, (0, None))
            if correct == np.count_nonzero(answers.hits):
                for name, metric in metrics.items():
                    values[name][row] = metric(answers)
    return values


def _unseen(cell: Cell, n_classes: int) -> Bool[Array, " C"] | None:
    """Which classes are without shots follows from the names alone."""
    if cell.profile != "missing":
        return None
    no_labels = np.empty(0, np.int64)
    return class_shots(cell.profile, cell.dataset, no_labels, n_classes, cell.shots, cell.seed) == 0
