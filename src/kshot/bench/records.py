"""The records folder, the only truth about what is done.

RECORDS/study.json                                      what belongs here, written first; may grow, never change
RECORDS/study-copy.json                                 the same, for the day it is lost
RECORDS/cells/DATASET/BACKBONE/TIER/K04-s0.parquet      one cell, every method; whole or absent; K04-s0-missing
                                                        and the like under another profile of shots than balanced
RECORDS/answers/DATASET/BACKBONE/TIER/K04-s0.parquet    what its heads said about every test picture, for metrics alone
RECORDS/compact/*.parquet                               many cells joined by `kshot records compact`
RECORDS/superseded/*.parquet                            records of methods whose code was changed since
RECORDS/failures/…/K04-s0.METHOD.txt                    tracebacks of failed methods
RECORDS/runs/*.json                                     which machine computed here, one file a run
"""

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from kshot.bench.ownership import addable, contradiction, is_of
from kshot.bench.parquet import intact_only, table, write_sealed
from kshot.bench.record import CellFacts, Record
from kshot.bench.study import Cell, Study, study_from_json
from kshot.errors import StudyError
from kshot.files import is_temporary, json_seal, locked, write_text
from kshot.stats.answers import pack_answers
from kshot.types import BALANCED

NAME, COPY = "study.json", "study-copy.json"
NEEDED = ("hash", "study", "dropped", "features")
RUNS = "runs"


class Records:
    """One study's folder."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    @property
    def header(self) -> Path:
        return self.folder / NAME

    def claim(self, study: Study, dropped: Iterable[Cell], features: dict[str, str]) -> None:
        """Make the folder this study's, or refuse it when it belongs to another study or other features."""
        with self.lock():
            self._claim(study, dropped, features)

    def lock(self) -> AbstractContextManager[None]:
        """Held by whoever changes more than one cell's file."""
        return locked(self.header)

    def _claim(self, study: Study, dropped: Iterable[Cell], features: dict[str, str]) -> None:
        extended: list[str] = []
        # Listed before we look for the header: another driver may be writing it at this moment.
        occupied = any(not is_temporary(path) for path in self.folder.glob("*"))
        if self.header.is_file():
            try:
                self._check_owner(study, features)
            except StudyError:
                # A header binds by the records it stands for; without any the folder is free.
                if any(self.files()):
                    raise
            else:
                before = read_header(self.folder)
                features = before["features"] | features
                extended = [*before["extends"], *([before["hash"]] if before["hash"] != study.hash else [])]
        elif occupied and not self._proves(study, features):
            raise StudyError(f"{self.folder} is not empty and not a records folder. Choose another --records.")
        content = {
            "hash": study.hash,
            "extends": extended,
            "study": json.loads(study.to_json()),
            "dropped": [list(astuple(cell)) for cell in dropped],
            "features": features,
        }
        write_header(self.folder, content)

    def _proves(self, study: Study, features: dict[str, str]) -> bool:
        """Whether all records of a folder without header name this study and these features."""
        files = [*self.loose(), *self.joined()]
        return bool(files) and all(is_of(path, study.hash, features) for path in files)

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

    def path(self, cell: Cell) -> Path:
        folder = self.folder / "cells" / cell.dataset / cell.backbone / cell.tier
        profile = "" if cell.profile == BALANCED else f"-{cell.profile}"
        return folder / f"K{cell.shots:02d}-s{cell.seed}{profile}.parquet"

    def loose(self) -> list[Path]:
        """Intact files of single cells, in a fixed order."""
        return intact_only(self.files()[0])

    def joined(self) -> list[Path]:
        """Intact files of many cells."""
        return intact_only(self.files()[1])

    def files(self) -> tuple[list[Path], list[Path]]:
        """Files of single cells and of many, damaged ones too; not the hidden ones, which somebody is writing."""
        loose = sorted((self.folder / "cells").glob("*/*/*/K*.parquet"))
        return loose, sorted((self.folder / "compact").glob("[!.]*.parquet"))

    def sources(self) -> tuple[list[Path], list[Path]]:
        """Loose and joined files to read; at least one of them."""
        loose, joined = self.loose(), self.joined()
        if not loose and not joined:
            raise StudyError(f"{self.folder} holds no finished cell yet. Run `kshot run` first, or see `kshot status`.")
        return loose, joined

    def owners(self) -> tuple[str, list[str]]:
        """The hash of the folder's study and those of the studies it extends, whose records are its own."""
        if not self.header.is_file():
            return "", []
        header = read_header(self.folder)
        return header["hash"], header["extends"]

    def grows_into(self, study: Study) -> bool:
        """Whether cells here may lack methods of this study, because a smaller one wrote them."""
        own, former = self.owners()
        return bool(own) and (own != study.hash or bool(former))

    def write(self, study: Study, facts: CellFacts, records: Sequence[Record]) -> None:
        """One cell's file, all or nothing; answers and tracebacks of failures go beside it first, so that a cell whose
        records are there is done."""
        self.write_answers(records)
        for record in records:
            if record.traceback:
                write_text(self.failure(record.cell, record.method), record.traceback)
        write_sealed(table(study, facts, records), self.path(records[0].cell), named=True)

    def write_answers(self, records: Sequence[Record]) -> None:
        """Add what these records of a cell kept to its file; methods that it already has are replaced."""
        import pyarrow as pa

        kept = {record.method: _answers_row(record) for record in records if record.answers is not None}
        if not kept:
            return
        cell = records[0].cell
        earlier = {row["method"]: row for row in self.answers(cell)}
        now = earlier | kept
        if now != earlier:
            rows = pa.Table.from_pylist(list(now.values()))
            write_sealed(rows, self.answers_path(cell), statistics=False, named=True)

    def answers(self, cell: Cell) -> list[dict[str, Any]]:
        """What was kept of the cell's answers, one row a method, as it was packed."""
        import pyarrow.parquet as pq

        path = self.answers_path(cell)
        if not path.is_file() or not intact_only([path]):
            return []
        # A file of its own: folders' names are no columns.
        return pq.ParquetFile(path).read().to_pylist()

    def answers_path(self, cell: Cell) -> Path:
        return self.folder / "answers" / self.path(cell).relative_to(self.folder / "cells")

    def runs(self) -> list[dict[str, Any]]:
        """What each run that wrote here told of its machine; a file that is being written is not read."""
        paths = sorted((self.folder / RUNS).glob("[!.]*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def failure(self, cell: Cell, method: str) -> Path:
        """Where the traceback of a failed method is kept."""
        inside = self.path(cell).relative_to(self.folder / "cells").with_suffix("")
        return self.folder / "failures" / inside.parent / f"{inside.name}.{re.sub(r'[^A-Za-z0-9._-]', '_', method)}.txt"


def _answers_row(record: Record) -> dict[str, Any]:
    """All rows of a cell have the same truth; parquet's dictionary keeps it once."""
    assert record.answers is not None
    return {
        "method": record.method,
        "n_classes": record.answers.n_classes,
        "truth": record.answers.truth.astype("uint16").tobytes(),
        "answers": pack_answers(record.answers),
    }


def records_folder(given: Path | str | None, study_name: str) -> Path:
    """Where a study's records are kept unless somebody says otherwise."""
    return Path("records") / study_name if given is None else Path(given)


def records_around(folder: Path) -> list[Path]:
    """The records folders in a folder."""
    return sorted(path.parent for path in folder.glob("*/study.json"))


def write_header(folder: Path, content: dict[str, Any]) -> None:
    """Sealed, and twice: the copy last, so that one of the two is whole whenever power fails."""
    text = json.dumps({**content, "seal": json_seal(content)}, indent=1) + "\n"
    for name in (NAME, COPY):
        write_text(folder / name, text)


def read_header(folder: Path, name: str = NAME) -> dict[str, Any]:
    """What stands in it; a changed letter is noticed."""
    path = folder / name
    if not path.is_file():
        lost = (folder / "cells").is_dir() or (folder / "compact").is_dir()
        step = f"`kshot records check {folder} --repair` brings it back" if lost else "Run `kshot run` first"
        raise StudyError(f"{folder} is not a records folder: it has no study.json. {step}.")
    try:
        header = {"extends": [], **json.loads(path.read_text(encoding="utf-8"))}
        lacks = [key for key in NEEDED if key not in header]
        seal = header.pop("seal", None)
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if lacks:
        raise _damaged(path, f"it lacks {', '.join(lacks)}")
    if seal not in (None, json_seal(header)):
        raise _damaged(path, "it was changed after it was written")
    return header


def stored_study(folder: Path) -> Study:
    """The study that the header holds; its hash must be the one beside it."""
    header = read_header(folder)
    try:
        study = study_from_json(json.dumps(header["study"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder / NAME, f"it holds no study: {type(error).__name__} {error}") from error
    return study


def restore_header(folder: Path) -> bool:
    """Bring a lost or damaged header back from its copy; whether that was possible."""
    try:
        content = read_header(folder, COPY)
    except StudyError:
        return False
    write_header(folder, content)
    return True


def _damaged(path: Path, why: str) -> StudyError:
    return StudyError(
        f"{path} is damaged ({why}). `kshot records check {path.parent} --repair` brings its copy back. "
        "Choose another --records folder where there is none."
    )
