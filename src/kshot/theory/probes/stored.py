"""Probes of a whole study, stored beside its records.

RECORDS/probes/GROUP/DATASET/BACKBONE/TIER/K04.*.parquet    all draws of one shot count; whole or absent
RECORDS/probes/GROUP/DATASET/BACKBONE/TIER/K00.*.parquet    what needs no draw

A row is one quantity of one cell. Quantities of all draws of a shot count have seed −1, those of the stratum also
0 shots.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from kshot.bench.record import CELL, cell_columns, kshot_version
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.files import files_at, intact_only, read_tables, replace_table
from kshot.types import BALANCED

if TYPE_CHECKING:
    import pyarrow as pa

NO_SEED, NO_SHOTS = -1, 0
# Cell, name of the probe, and its quantities.
Measured: TypeAlias = list[tuple[Cell, str, dict[str, float]]]


class ProbeFolder:
    """The probes of one records folder."""

    def __init__(self, records: Path):
        self.folder = records / "probes"

    def place(self, cell: Cell, group: str) -> str:
        """The place of a file inside the folder, without hash and suffix."""
        profile = "" if cell.profile == BALANCED else f"-{cell.profile}"
        return f"{group}/{cell.dataset}/{cell.backbone}/{cell.tier}/K{cell.shots:02d}{profile}"

    def missing(self, cells: Mapping[Cell, Sequence[MethodSpec]]) -> dict[Cell, tuple[MethodSpec, ...]]:
        """Cells that are not stored: all draws of a shot count where its file lacks one of them."""
        by_file: dict[str, set[int]] = {}
        for cell, specs in cells.items():
            for spec in specs:
                by_file.setdefault(self.place(cell, spec.name), set()).add(cell.seed)
        whole = {place for place, seeds in by_file.items() if seeds <= self._seeds(place)}
        remaining = {
            cell: tuple(spec for spec in specs if self.place(cell, spec.name) not in whole)
            for cell, specs in cells.items()
        }
        return {cell: specs for cell, specs in remaining.items() if specs}

    def write(self, study: Study, group: str, cells: Sequence[Cell], measured: Measured, simulated: bool) -> None:
        """Write one file, whole or not at all; `cells` are its draws."""
        import pyarrow as pa

        shared = {
            "study": study.name,
            "study_hash": study.hash,
            "simulated": simulated,
            "dtype": study.dtype,
            "version": kshot_version(),
        }
        rows = [shared | row for row in probe_rows(measured)]
        seeds = ",".join(str(cell.seed) for cell in cells)
        content = pa.Table.from_pylist(rows, schema=probe_schema()).replace_schema_metadata({"seeds": seeds})
        replace_table(content, self.folder, self.place(cells[0], group))

    def load(self) -> "pa.Table":
        """Every row, sorted by cell and quantity; no rows where nothing is stored."""
        paths = intact_only(self.folder, sorted(self.folder.glob("*/*/*/*/K*.parquet")))
        return read_tables(paths, probe_schema()).sort_by([(name, "ascending") for name in (*CELL, "quantity")])

    def _seeds(self, place: str) -> set[int]:
        """The draws that a file holds; none where there is no file, or a damaged one."""
        import pyarrow.parquet as pq

        paths = intact_only(self.folder, files_at(self.folder, place))
        metadata = (pq.read_schema(paths[-1]).metadata or {}) if paths else {}
        return {int(seed) for seed in metadata.get(b"seeds", b"").decode().split(",") if seed}


def probe_rows(measured: Measured) -> list[dict[str, Any]]:
    """One row per cell and quantity."""
    return [
        {axis: getattr(cell, axis) for axis in CELL}
        | {"probe": probe, "quantity": f"{probe}.{name}", "value": float(value)}
        for cell, probe, row in measured
        for name, value in row.items()
    ]


def probe_schema() -> "pa.Schema":
    import pyarrow as pa

    text = pa.string()
    measured = [("probe", text), ("quantity", text), ("value", pa.float64())]
    return pa.schema([*cell_columns(), *measured, ("simulated", pa.bool_()), ("dtype", text), ("version", text)])
