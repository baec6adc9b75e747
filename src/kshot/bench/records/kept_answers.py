"""Answers beside the records, one sealed file per cell; a folder without them is as good for everything but metrics.

RECORDS/answers/DATASET/BACKBONE/TIER/K04-s0.parquet
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from kshot.answer_codes import Answers, pack_answers, unpack_answers
from kshot.bench.records.folder import Records
from kshot.bench.records.integrity import intact_only, write_sealed
from kshot.bench.records.schema import CELL, Record
from kshot.bench.study import Cell
from kshot.episodes.draw import class_shots
from kshot.profiles import split_profile
from kshot.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "answers"


def answers_path(records: Records, cell: Cell) -> Path:
    return records.folder / FOLDER / records.path(cell).relative_to(records.folder / "cells")


def write_answers(records: Records, rows: Sequence[Record]) -> None:
    """Add what these records kept to their cell's file; methods that it already has are replaced."""
    import pyarrow as pa

    kept = [row for row in rows if row.answers is not None]
    if not kept:
        return
    path = answers_path(records, kept[0].cell)
    earlier = {row["method"]: row for row in _read(path)}
    now = earlier | {row.method: _row(row) for row in kept}
    if now != earlier:
        write_sealed(pa.Table.from_pylist(list(now.values())), path, statistics=False, named=True)


def read_answers(records: Records, cell: Cell) -> Iterator[tuple[str, Answers]]:
    """Every method of the cell whose answers were kept."""
    for row in _read(answers_path(records, cell)):
        truth = np.frombuffer(row["truth"], np.uint16).astype(np.int64)
        answers = unpack_answers(row["answers"], truth, row["n_classes"])
        yield row["method"], replace(answers, unseen=_unseen(cell, row["n_classes"]))


def metric_values(
    records: Records, table: "pa.Table", metrics: Mapping[str, Callable[[Answers], float]]
) -> dict[str, Float[Array, " N"]]:
    """Every metric of every record of the table, in its order; NaN where no answers of that very record were kept."""
    values = {name: np.full(table.num_rows, np.nan) for name in metrics}
    columns = (table[name].to_pylist() for name in (*CELL, "method", "n_correct"))
    places: dict[Cell, dict[str, tuple[int, int | None]]] = {}
    for row, (*cell, method, correct) in enumerate(zip(*columns, strict=True)):
        places.setdefault(Cell(*cell), {})[method] = row, correct
    for cell, methods in places.items():
        for method, answers in read_answers(records, cell):
            row, correct = methods.get(method, (0, None))
            if correct == np.count_nonzero(answers.hits):
                for name, metric in metrics.items():
                    values[name][row] = metric(answers)
    return values


def _unseen(cell: Cell, n_classes: int) -> Bool[Array, " C"] | None:
    """Which classes are without shots follows from the names alone."""
    dataset, profile = split_profile(cell.dataset)
    if profile != "missing":
        return None
    no_labels = np.empty(0, np.int64)
    return class_shots(profile, dataset, no_labels, n_classes, cell.shots, cell.seed) == 0


def _row(record: Record) -> dict[str, Any]:
    """All rows of a cell have the same truth; parquet's dictionary keeps it once."""
    assert record.answers is not None
    return {
        "method": record.method,
        "n_classes": record.answers.n_classes,
        "truth": record.answers.truth.astype(np.uint16).tobytes(),
        "answers": pack_answers(record.answers),
    }


def _read(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    if not path.is_file() or not intact_only([path]):
        return []
    # A file of its own: folders' names are no columns.
    return pq.ParquetFile(path).read().to_pylist()
