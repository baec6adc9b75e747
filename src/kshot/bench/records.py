"""The records folder, the only truth about what is done.

RECORDS/study.json                                      what belongs here, written first
RECORDS/cells/DATASET/BACKBONE/TIER/K04-s0.parquet      one cell, every method; whole or absent
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kshot.bench.study import Cell, Study, study_from_json
from kshot.errors import StudyError
from kshot.files import write_atomically, write_text

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

SECONDS = ("fit_seconds", "score_seconds")


@dataclass(frozen=True, slots=True)
class Record:
    """One method on one cell, as it is stored."""

    cell: Cell
    method: str
    title: str
    sees: tuple[str, ...]
    status: Literal["ok", "undefined", "failed"]
    reason: str = ""
    accuracy: float | None = None
    n_test: int = 0
    n_correct: int | None = None
    hits: bytes = b""
    selected: dict[str, Any] = field(default_factory=dict)
    selected_from: dict[str, str] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What a record repeats about its cell: sizes, geometry, provenance. NaN never: unknown is None."""

    simulated: bool
    dtype: str
    n_classes: int
    feature_hashes: dict[str, str]
    lambda_js: float | None
    d2: float | None
    v: float | None
    share: float | None


class Records:
    """One study's folder."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    @property
    def header(self) -> Path:
        return self.folder / "study.json"

    def claim(self, study: Study, dropped: Iterable[Cell], features: dict[str, str]) -> None:
        """Make the folder this study's, or refuse it when it belongs to another study or other features."""
        if self.header.is_file():
            self._check_owner(study, features)
            features = self._read_header()["features"] | features
        elif self.folder.is_dir() and any(self.folder.iterdir()):
            raise StudyError(
                f"{self.folder} is not empty and not a records folder. Choose another --records."
            )
        content = {
            "hash": study.hash,
            "study": json.loads(study.to_json()),
            "dropped": [[c.dataset, c.backbone, c.tier, c.shots, c.seed] for c in dropped],
            "features": features,
        }
        write_text(self.header, json.dumps(content, indent=1) + "\n")

    def _check_owner(self, study: Study, features: dict[str, str]) -> None:
        found = self.study()
        if found.hash != study.hash:
            raise StudyError(
                f"{self.folder} holds records of study '{found.name}' with hash {found.hash}, but this is "
                f"'{study.name}' with hash {study.hash}. Give another folder with --records, or restore the "
                "study file that wrote it."
            )
        for name, before in self._read_header()["features"].items():
            if features.get(name, before) != before:
                raise StudyError(
                    f"{self.folder} was computed on other features: {name} had sha256 {before}, now it has "
                    f"{features[name]}. Give another folder with --records, or restore the features."
                )

    def study(self) -> Study:
        return study_from_json(json.dumps(self._read_header()["study"]))

    def dropped(self) -> set[Cell]:
        return {Cell(*values) for values in self._read_header()["dropped"]}

    def path(self, cell: Cell) -> Path:
        folder = self.folder / "cells" / cell.dataset / cell.backbone / cell.tier
        return folder / f"K{cell.shots:02d}-s{cell.seed}.parquet"

    def done(self, cells: Iterable[Cell]) -> set[Cell]:
        """Which of these cells have their file."""
        present = {str(path) for path in (self.folder / "cells").glob("*/*/*/K*.parquet")}
        return {cell for cell in cells if str(self.path(cell)) in present}

    def write(self, study: Study, facts: CellFacts, records: Sequence[Record]) -> None:
        """One cell's file, all or nothing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [_row(study, facts, record) for record in records]
        table = pa.Table.from_pylist(rows, schema=schema())
        path = self.path(records[0].cell)
        write_atomically(path, lambda temporary: pq.write_table(table, temporary, compression="zstd"))

    def _read_header(self) -> dict[str, Any]:
        if not self.header.is_file():
            raise StudyError(
                f"{self.folder} is not a records folder: it has no study.json. Run `kshot run` first."
            )
        try:
            return json.loads(self.header.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StudyError(
                f"{self.header} is damaged ({error}). Choose another --records folder."
            ) from error


def query(folder: Path | str, sql: str) -> "duckdb.DuckDBPyRelation":
    """SQL over the records, which it calls `records`."""
    import duckdb

    files = Path(folder) / "cells"
    if not any(files.glob("*/*/*/*.parquet")):
        raise StudyError(
            f"{folder} holds no finished cell yet. Run `kshot run` first, or see `kshot status`."
        )
    connection = duckdb.connect()
    pattern = str(files / "*/*/*/*.parquet").replace("'", "''")
    connection.execute(f"create view records as select * from read_parquet('{pattern}')")
    return connection.sql(sql)


def load(folder: Path | str) -> "pa.Table":
    """All records, in an order that does not depend on how they were computed."""
    ordered = "select * from records order by dataset, backbone, tier, shots, seed, method"
    return query(folder, ordered).to_arrow_table()


def schema() -> "pa.Schema":
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int32()
    return pa.schema(
        [
            ("study", text),
            ("study_hash", text),
            ("dataset", text),
            ("backbone", text),
            ("tier", text),
            ("shots", whole),
            ("seed", whole),
            ("method", text),
            ("title", text),
            ("sees", pa.list_(text)),
            ("status", text),
            ("reason", text),
            ("accuracy", number),
            ("n_test", whole),
            ("n_correct", whole),
            ("hits", pa.binary()),
            ("selected", text),
            ("selected_from", text),
            ("lambda_js", number),
            ("d2", number),
            ("v", number),
            ("share", number),
            ("n_classes", whole),
            ("simulated", pa.bool_()),
            ("dtype", text),
            ("version", text),
            ("feature_hashes", text),
            ("fit_seconds", number),
            ("score_seconds", number),
        ]
    )


def _row(study: Study, facts: CellFacts, record: Record) -> dict[str, Any]:
    cell = record.cell
    return {
        "study": study.name,
        "study_hash": study.hash,
        "dataset": cell.dataset,
        "backbone": cell.backbone,
        "tier": cell.tier,
        "shots": cell.shots,
        "seed": cell.seed,
        "method": record.method,
        "title": record.title,
        "sees": sorted(record.sees),
        "status": record.status,
        "reason": record.reason,
        "accuracy": record.accuracy,
        "n_test": record.n_test,
        "n_correct": record.n_correct,
        "hits": record.hits,
        "selected": json.dumps(record.selected, sort_keys=True),
        "selected_from": json.dumps(record.selected_from, sort_keys=True),
        "lambda_js": facts.lambda_js,
        "d2": facts.d2,
        "v": facts.v,
        "share": facts.share,
        "n_classes": facts.n_classes,
        "simulated": facts.simulated,
        "dtype": facts.dtype,
        "version": version("kshot"),
        "feature_hashes": json.dumps(facts.feature_hashes, sort_keys=True),
        "fit_seconds": record.fit_seconds,
        "score_seconds": record.score_seconds,
    }
