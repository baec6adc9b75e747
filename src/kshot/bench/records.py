"""The records folder, the only truth about what is done.

RECORDS/study.json                                      what belongs here, written first; may grow, never change
RECORDS/cells/DATASET/BACKBONE/TIER/K04-s0.parquet      one cell, every method; whole or absent
RECORDS/compact/*.parquet                               many cells joined by `kshot compact`
RECORDS/failures/…/K04-s0.METHOD.txt                    tracebacks of failed methods
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kshot.bench.look import look, quoted
from kshot.bench.ownership import addable, contradiction
from kshot.bench.schema import CELL, CellFacts, Record, table
from kshot.bench.study import Cell, MethodSpec, Study, study_from_json
from kshot.errors import StudyError
from kshot.files import is_temporary, write_atomically, write_text

if TYPE_CHECKING:
    import pyarrow as pa


class Records:
    """One study's folder."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    @property
    def header(self) -> Path:
        return self.folder / "study.json"

    def claim(self, study: Study, dropped: Iterable[Cell], features: dict[str, str]) -> None:
        """Make the folder this study's, or refuse it when it belongs to another study or other features."""
        extended: list[str] = []
        # Listed before we look for the header: another driver may be writing it at this moment.
        occupied = any(not is_temporary(path) for path in self.folder.glob("*"))
        if self.header.is_file():
            self._check_owner(study, features)
            before = self._read_header()
            features = before["features"] | features
            extended = [*before["extends"], *([before["hash"]] if before["hash"] != study.hash else [])]
        elif occupied:
            raise StudyError(
                f"{self.folder} is not empty and not a records folder. Choose another --records."
            )
        content = {
            "hash": study.hash,
            "extends": extended,
            "study": json.loads(study.to_json()),
            "dropped": [[c.dataset, c.backbone, c.tier, c.shots, c.seed] for c in dropped],
            "features": features,
        }
        write_text(self.header, json.dumps(content, indent=1) + "\n")

    def _check_owner(self, study: Study, features: dict[str, str]) -> None:
        found = self.study()
        reason = contradiction(study, found)
        if reason:
            options = " ".join(f"--method {name}" for name in addable(study, found))
            add = f"Add {options} to the command, or restore" if options else "Restore"
            raise StudyError(
                f"{self.folder} {reason} {add} the study file that wrote it. Give another folder with --records to "
                "compute this study beside it."
            )
        self.check_features(features)

    def check_features(self, features: dict[str, str]) -> None:
        """Refuse features that are not those the records were computed on; absent ones are no contradiction."""
        for name, before in self._read_header()["features"].items():
            if features.get(name, before) != before:
                raise StudyError(
                    f"{self.folder} was computed on other features: {name} had sha256 {before}, now it has "
                    f"{features[name]}. Give another folder with --records, or restore the features."
                )

    def study(self) -> Study:
        try:
            return study_from_json(json.dumps(self._read_header()["study"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise self._damaged(f"it holds no study: {type(error).__name__} {error}") from error

    def dropped(self) -> set[Cell]:
        return {Cell(*values) for values in self._read_header()["dropped"]}

    def path(self, cell: Cell) -> Path:
        folder = self.folder / "cells" / cell.dataset / cell.backbone / cell.tier
        return folder / f"K{cell.shots:02d}-s{cell.seed}.parquet"

    def loose(self) -> list[Path]:
        """Files of single cells, in a fixed order."""
        return sorted((self.folder / "cells").glob("*/*/*/K*.parquet"))

    def joined(self) -> list[Path]:
        """Files of many cells; not the hidden ones, which somebody is writing."""
        return sorted((self.folder / "compact").glob("[!.]*.parquet"))

    def sources(self) -> tuple[list[Path], list[Path]]:
        """Loose and joined files to read; at least one of them."""
        loose, joined = self.loose(), self.joined()
        if not loose and not joined:
            raise StudyError(
                f"{self.folder} holds no finished cell yet. Run `kshot run` first, or see `kshot status`."
            )
        return loose, joined

    def lacking(
        self, study: Study, cells: Mapping[Cell, Sequence[MethodSpec]]
    ) -> dict[Cell, tuple[MethodSpec, ...]]:
        """Which of the study's cells have no record of some methods, and of which.

        A cell's file holds all methods of the study that wrote it, so reading is only needed where this study
        extends the one that did.
        """
        extended = self.grows_into(study)
        files = set() if extended else {str(path) for path in self.loose()}
        recorded: dict[Cell, set[str]] = {}
        if self.joined() or (extended and self.loose()):
            view = "records" if extended else "joined"
            rows = query(self.folder, f"select {', '.join(CELL)}, list(method) from {view} group by all")
            recorded = {Cell(*row[:-1]): set(row[-1]) for row in rows}
        remaining = {
            cell: tuple(spec for spec in specs if spec.name not in recorded.get(cell, ()))
            for cell, specs in cells.items()
            if str(self.path(cell)) not in files
        }
        return {cell: specs for cell, specs in remaining.items() if specs}

    def done(self, study: Study | None = None) -> set[Cell]:
        """The cells that have every record of the folder's study, or of one that extends it."""
        study = study or self.study()
        cells = study.cells()
        return cells.keys() - self.lacking(study, cells).keys()

    def owner(self) -> str:
        """SQL for a record's study hash: records of the studies that the folder's study extends are its own."""
        header = self._read_header() if self.header.is_file() else {}
        if not header.get("extends"):
            return "study_hash as study_hash"
        former = ", ".join(map(quoted, header["extends"]))
        return f"if(study_hash in ({former}), {quoted(header['hash'])}, study_hash) as study_hash"

    def grows_into(self, study: Study) -> bool:
        """Whether cells here may lack methods of this study, because a smaller one wrote them."""
        if not self.header.is_file():
            return False
        header = self._read_header()
        return header["hash"] != study.hash or bool(header["extends"])

    def write(self, study: Study, facts: CellFacts, records: Sequence[Record]) -> None:
        """One cell's file, all or nothing; tracebacks of failures go beside it first."""
        import pyarrow.parquet as pq

        path = self.path(records[0].cell)
        for record in records:
            if record.traceback:
                write_text(self.failure(record.cell, record.method), record.traceback)
        content = table(study, facts, records)
        write_atomically(path, lambda temporary: pq.write_table(content, temporary, compression="zstd"))

    def failure(self, cell: Cell, method: str) -> Path:
        """Where the traceback of a failed method is kept."""
        inside = self.path(cell).relative_to(self.folder / "cells").with_suffix("")
        return (
            self.folder
            / "failures"
            / inside.parent
            / f"{inside.name}.{re.sub(r'[^A-Za-z0-9._-]', '_', method)}.txt"
        )

    def _read_header(self) -> dict[str, Any]:
        if not self.header.is_file():
            raise StudyError(
                f"{self.folder} is not a records folder: it has no study.json. Run `kshot run` first."
            )
        try:
            header = {"extends": [], **json.loads(self.header.read_text(encoding="utf-8"))}
        except (ValueError, TypeError) as error:
            raise self._damaged(str(error)) from error
        lacks = [key for key in ("hash", "study", "dropped", "features") if key not in header]
        if lacks:
            raise self._damaged(f"it lacks {', '.join(lacks)}")
        return header

    def _damaged(self, why: str) -> StudyError:
        return StudyError(f"{self.header} is damaged ({why}). Choose another --records folder.")


def query(folder: Path | str, sql: str) -> list[tuple]:
    """SQL over the views `records` (each record once), `loose` (single cells) and `joined` (compacted)."""
    records = Records(folder)
    return look(records.sources, records.owner, sql, lambda found: found.fetchall())


def load(folder: Path | str) -> "pa.Table":
    """All records, in an order that does not depend on how they were computed."""
    records = Records(folder)
    sql = f"select * from records order by {', '.join(CELL)}, method"
    return look(records.sources, records.owner, sql, lambda found: found.to_arrow_table())
