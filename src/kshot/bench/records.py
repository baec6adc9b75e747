"""The records folder: the only record of which cells are done.

RECORDS/study.json                                   the header: study and features; may grow, never change
RECORDS/study-copy.json                              backup of study.json
RECORDS/cells/DATASET/BACKBONE/TIER/K04-s0.*.parquet one cell, every method; whole or absent; K04-s0-missing and the
                                                     like under another profile of shots than balanced
RECORDS/answers/…/K04-s0.*.parquet                   its heads' answers to every test picture, for metrics
RECORDS/compact/*.parquet                            many cells joined by `kshot records compact`
RECORDS/superseded/*.parquet                         records of methods whose code was changed since
RECORDS/failures/…/K04-s0.METHOD.txt                 tracebacks of failed methods
RECORDS/runs/*.json                                  which machine computed here, one file a run

The names of parquet files hold a hash of their content (`kshot.files`).
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from kshot.bench.additions import addable, contradiction
from kshot.bench.record import (
    KEY,
    NAME,
    CellFacts,
    Record,
    cells_of,
    read_header,
    schema,
    stored_study,
    table,
    write_header,
)
from kshot.bench.study import Cell, Study
from kshot.data.episode import class_shots
from kshot.errors import StudyError
from kshot.files import files_at, intact_only, is_temporary, locked, read_tables, replace_table, write_text
from kshot.stats.answers import Answers, answers_from_table, answers_table
from kshot.types import BALANCED, Array

if TYPE_CHECKING:
    import pyarrow as pa

RUNS = "runs"
# Other processes may join files between our listing and our reading them; then we list them again.
ATTEMPTS = 5


class Records:
    """One study's folder."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    @property
    def header(self) -> Path:
        return self.folder / NAME

    def lock(self) -> AbstractContextManager[None]:
        """Lock of the folder, for changes of more than one cell's file."""
        return locked(self.header)

    def claim(
        self, study: Study, dropped: Iterable[Cell], features: dict[str, str], about: Mapping[str, dict] | None = None
    ) -> None:
        """Write the header, or raise if the folder belongs to another study or other features.

        `about` (constants of encoders, ignored gates) is added to what the header holds for other strata.
        """
        told = dict(about or {})
        with self.lock():
            extended: list[str] = []
            # Listed before we look for the header: another driver may be writing it at this moment.
            occupied = any(not is_temporary(path) for path in self.folder.glob("*"))
            if self.header.is_file():
                try:
                    self._check_owner(study, features)
                except StudyError:
                    # A folder with a header but without records may be taken by another study.
                    if any(self.files()):
                        raise
                else:
                    before = read_header(self.folder)
                    features = before["features"] | features
                    told = {name: before.get(name, {}) | own for name, own in told.items()}
                    extended = [*before["extends"], *([before["hash"]] if before["hash"] != study.hash else [])]
            elif occupied and self._named_studies() != {study.hash}:
                raise StudyError(f"{self.folder} is not empty and not a records folder. Choose another --records.")
            content = {
                "hash": study.hash,
                "extends": extended,
                "study": json.loads(study.to_json()),
                "dropped": [list(astuple(cell)) for cell in dropped],
                "features": features,
                **told,
            }
            write_header(self.folder, content)

    def _named_studies(self) -> set[str]:
        """The studies that the records themselves name; none without records."""
        if not any(self.files()):
            return set()
        return set(load_table(self.folder, ["study_hash"])["study_hash"].to_pylist())

    def imported(self) -> dict[str, Any]:
        """File and column names of an imported table; empty where kshot computed the records."""
        return read_header(self.folder).get("imported", {}) if self.header.is_file() else {}

    def draw_rule(self) -> str:
        """Names the draws: two folders with the same name have the same shots in the same cell."""
        source = self.imported()
        return source["mapping"].get("draws", source["sha256"]) if source else self.study().supports or "kshot"

    def _check_owner(self, study: Study, features: dict[str, str]) -> None:
        owner = self.study()
        reason = contradiction(study, owner)
        if reason:
            options = " ".join(f"--method {name}" for name in addable(study, owner))
            add = f"Add {options} to the command, or restore" if options else "Restore"
            raise StudyError(
                f"{self.folder} {reason} {add} the study file that wrote it. Give another folder with --records to "
                "compute this study beside it."
            )
        self.check_features(features)

    def check_features(self, features: dict[str, str]) -> None:
        """Refuse features that are not those the records were computed on; absent ones are no contradiction."""
        if self.imported():
            raise StudyError(f"{self.folder} holds imported records; the features behind them are not known here.")
        for name, before in read_header(self.folder)["features"].items():
            if features.get(name, before) != before:
                raise StudyError(
                    f"{self.folder} was computed on other features: {name} had sha256 {before}, now it has "
                    f"{features[name]}. Give another folder with --records, or restore the features."
                )

    def study(self) -> Study:
        return stored_study(self.folder)

    def dropped(self) -> set[Cell]:
        return {Cell(*values) for values in read_header(self.folder)["dropped"]}

    def owners(self) -> tuple[str, list[str]]:
        """The hash of the folder's study and those of the studies it extends, whose records are its own."""
        if not self.header.is_file():
            return "", []
        header = read_header(self.folder)
        return header["hash"], header["extends"]

    def grows_into(self, study: Study) -> bool:
        """Whether cells here may lack methods of the study because a smaller study wrote them."""
        own, former = self.owners()
        return bool(own) and (own != study.hash or bool(former))

    def files(self) -> tuple[list[Path], list[Path]]:
        """Files of single cells and of many, damaged ones too; hidden ones are still being written."""
        loose = sorted((self.folder / "cells").glob("*/*/*/K*.parquet"))
        return loose, sorted((self.folder / "compact").glob("[!.]*.parquet"))

    def loose(self) -> list[Path]:
        """Intact files of single cells, in a fixed order."""
        return intact_only(self.folder, self.files()[0])

    def joined(self) -> list[Path]:
        """Intact files of many cells."""
        return intact_only(self.folder, self.files()[1])

    def cell_files(self, cell: Cell) -> list[Path]:
        """The cell's own files, damaged ones too; two where drivers that computed it at once were killed."""
        return files_at(self.folder, cell_place(cell))

    def write(self, study: Study, facts: CellFacts, records: Sequence[Record]) -> None:
        """Write one cell's file whole or not at all; answers and tracebacks first, so that a cell with records is
        complete."""
        self.write_answers(records)
        for record in records:
            if record.traceback:
                write_text(self.failure(record.cell, record.method), record.traceback)
        replace_table(table(study, facts, records), self.folder, cell_place(records[0].cell))

    def write_answers(self, records: Sequence[Record]) -> None:
        """Add the answers of these records of a cell to its file; those of the same methods are replaced."""
        kept = {record.method: record.answers for record in records if record.answers is not None}
        if kept:
            cell = records[0].cell
            replace_table(answers_table(self.answers(cell) | kept), self.folder, cell_place(cell, "answers"))

    def answers(self, cell: Cell) -> dict[str, Answers]:
        """The kept answers of the cell, by method."""
        import pyarrow.parquet as pq

        paths = intact_only(self.folder, files_at(self.folder, cell_place(cell, "answers")))
        if not paths:
            return {}
        found = answers_from_table(pq.ParquetFile(paths[-1]).read())
        return {method: replace(one, unseen=_unseen(cell, one.n_classes)) for method, one in found.items()}

    def runs(self) -> list[dict[str, Any]]:
        """The machine of each run that wrote here, without files that are still being written."""
        paths = sorted((self.folder / RUNS).glob("[!.]*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def failure(self, cell: Cell, method: str) -> Path:
        """Where the traceback of a failed method is kept."""
        return self.folder / f"{cell_place(cell, 'failures')}.{re.sub(r'[^A-Za-z0-9._-]', '_', method)}.txt"


def cell_place(cell: Cell, kind: str = "cells") -> str:
    """The place of a cell's file inside the folder, without hash and suffix."""
    profile = "" if cell.profile == BALANCED else f"-{cell.profile}"
    return f"{kind}/{cell.dataset}/{cell.backbone}/{cell.tier}/K{cell.shots:02d}-s{cell.seed}{profile}"


def load_table(folder: Path | str, columns: Sequence[str] | None = None, *, joined_only: bool = False) -> "pa.Table":
    """All records, each once, sorted by cell and method; all columns unless given.

    With `joined_only` those of compacted files, which may be none.
    """
    import pyarrow as pa

    records = Records(folder)
    wanted = list(columns or schema().names)
    found = _read(records, [name for name in schema().names if name in {*KEY, *wanted}], joined_only)
    first: dict[tuple, int] = {}
    for row, key in enumerate(zip(*(found[name].to_pylist() for name in KEY), strict=True)):
        first.setdefault(key, row)
    rows = np.array([first[key] for key in sorted(first)], np.int64)
    # `pa.array` would import pandas where that is installed, which takes longer than reading.
    found = found.select(wanted).take(pa.Int64Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)]))
    own, former = records.owners()
    if former and "study_hash" in wanted:
        hashes = [own if name in former else name for name in found["study_hash"].to_pylist()]
        found = found.set_column(wanted.index("study_hash"), "study_hash", pa.array(hashes, pa.string()))
    return found.combine_chunks()


def _read(records: Records, columns: list[str], joined_only: bool) -> "pa.Table":
    """The rows of all files, single cells first: a cell that was computed again replaces its compacted rows."""
    import pyarrow as pa

    for attempt in range(1, ATTEMPTS + 1):
        paths = [*([] if joined_only else records.loose()), *records.joined()]
        if not paths and not joined_only:
            break
        try:
            return read_tables(paths, schema(), columns)
        except (pa.ArrowException, OSError) as error:
            if attempt == ATTEMPTS or not isinstance(error, FileNotFoundError):
                raise StudyError(
                    f"the records in {records.folder} cannot be read ({error}). "
                    f"Type `kshot records check {records.folder}`."
                ) from error
    raise StudyError(f"{records.folder} holds no finished cell yet. Run `kshot run` first, or see `kshot status`.")


def metric_values(
    records: Records, table: "pa.Table", metrics: Mapping[str, Callable[[Answers], float]]
) -> dict[str, Float[Array, " N"]]:
    """Every metric of every record, in the table's order; NaN where no answers of that record were kept."""
    values = {name: np.full(table.num_rows, np.nan) for name in metrics}
    places: dict[Cell, dict[str, tuple[int, int | None]]] = {}
    columns = (cells_of(table), table["method"].to_pylist(), table["n_correct"].to_pylist())
    for row, (cell, method, correct) in enumerate(zip(*columns, strict=True)):
        places.setdefault(cell, {})[method] = row, correct
    for cell, methods in places.items():
        for method, answers in records.answers(cell).items():
            row, correct = methods.get(method, (0, None))
            if correct == np.count_nonzero(answers.hits):
                for name, metric in metrics.items():
                    values[name][row] = metric(answers)
    return values


def records_folder(given: Path | str | None, study_name: str) -> Path:
    """The folder given, or records/STUDY."""
    return Path("records") / study_name if given is None else Path(given)


def records_around(folder: Path) -> list[Path]:
    """The records folders in a folder."""
    return sorted(path.parent for path in folder.glob("*/study.json"))


def _unseen(cell: Cell, n_classes: int) -> Bool[Array, " C"] | None:
    """True for classes without shots, which follow from the cell's names."""
    if cell.profile != "missing":
        return None
    no_labels = np.empty(0, np.int64)
    return class_shots(cell.profile, cell.dataset, no_labels, n_classes, cell.shots, cell.seed) == 0
