"""The state of a run, read from its records folder and from a study file that has grown since."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kshot.bench.additions import addable, contradiction
from kshot.bench.record import CELL, cells_of
from kshot.bench.records import Records, load_table
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.bench.work import finished_cells
from kshot.errors import StudyError


@dataclass(frozen=True)
class RunStatus:
    """Counts of cells, and per method the records by status with the reasons of the bad ones."""

    study: str
    hash: str
    total: int
    dropped: int
    done: int
    methods: dict[str, Counter]
    reasons: dict[str, Counter]

    @property
    def missing(self) -> int:
        return self.total - self.dropped - self.done


def with_recorded_methods(folder: Path, study: Study) -> tuple[Study, list[str]]:
    """Add to a study the methods that its run got by `--method`; raise if the folder belongs to another study."""
    owner = Records(folder).study()
    besides = addable(study, owner)
    whole = study.with_methods(besides)
    reason = contradiction(whole, owner)
    if reason:
        raise StudyError(f"{folder} {reason} To see where that one stands, type `kshot status {folder}`.")
    return whole, besides


def added_methods(folder: Path) -> list[str]:
    """Methods of the folder that `--method` may have added to its study file."""
    specs = Records(folder).study().methods().values()
    return [spec.name for spec in specs if ":" in spec.name and spec == MethodSpec(spec.name, spec.name)]


def run_status(folder: Path, study: Study | None = None) -> RunStatus:
    """The state of the folder's study, or of one that extends it; added cells never count as dropped."""
    records = Records(folder)
    study = study or records.study()
    cells = study.cells()
    done = len(finished_cells(records, study))
    methods: dict[str, Counter] = {name: Counter() for name in study.methods()}
    reasons: dict[str, Counter] = {}
    if records.loose() or records.joined():
        columns = load_table(folder, ["method", "status", "reason"]).to_pydict().values()
        for (method, status, reason), count in sorted(Counter(zip(*columns, strict=True)).items()):
            methods.setdefault(method, Counter())[status] += count
            if reason:
                reasons.setdefault(f"{method} {status}", Counter())[reason] += count
    return RunStatus(study.name, study.hash, len(cells), len(records.dropped()), done, methods, reasons)


def count_done(folder: Path, study: Study | None = None) -> tuple[int, int]:
    """Cells recorded and cells wanted."""
    records = Records(folder)
    study = study or records.study()
    return len(finished_cells(records, study)), len(study.cells()) - len(records.dropped())


def recorded_pairs(folder: Path, study: Study | None = None) -> tuple[int, int]:
    """(dataset, backbone) with records, and all of the study: the paper calls them pairs."""
    records = Records(folder)
    study = study or records.study()
    done: set[tuple[str, str]] = set()
    if records.header.is_file() and (records.loose() or records.joined()):
        table = load_table(folder, ["dataset", "backbone"])
        done = set(zip(table["dataset"].to_pylist(), table["backbone"].to_pylist(), strict=True))
    whole = {(cell.dataset, cell.backbone) for cell in study.cells()}
    return len(done & whole), len(whole)


def failed_cells(records: Records) -> list[Cell]:
    """The cells in which some method failed."""
    table = load_table(records.folder, [*CELL, "status"])
    columns = zip(cells_of(table), table["status"].to_pylist(), strict=True)
    return list(dict.fromkeys(cell for cell, status in columns if status == "failed"))


def failed_records(records: Records) -> dict[str, int]:
    """How many records of each method are failures."""
    methods = run_status(records.folder).methods
    return {name: counts["failed"] for name, counts in sorted(methods.items()) if counts["failed"]}
