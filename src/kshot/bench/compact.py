"""Join many small files into one, and remove records; both may be interrupted at any moment."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.bench.record import cells_of
from kshot.bench.records import Records, load_table
from kshot.bench.study import Cell
from kshot.files import write_table

if TYPE_CHECKING:
    import pyarrow as pa

SUPERSEDED = "superseded"


def compact(records: Records) -> int:
    """Join everything into one file; return how many files it replaces.

    Sources are deleted only after the joined file is in place, and reads count a record once whatever copies exist,
    so a crash costs nothing; another compaction waits for its turn.
    """
    with records.lock():
        loose, joined = records.loose(), records.joined()
        if not loose and len(joined) < 2:
            return 0
        _join(records, loose + joined, load_table(records.folder))
        return len(loose + joined)


def forget(records: Records, cells: Iterable[Cell]) -> None:
    """Make cells missing again."""
    chosen = set(cells)
    with records.lock():
        joined = records.joined()
        if joined:
            table = load_table(records.folder)
            kept = table.filter([cell not in chosen for cell in cells_of(table)])
            _join(records, joined + records.loose(), kept)
        for path in (path for cell in chosen for path in records.cell_files(cell)):
            path.unlink(missing_ok=True)


def supersede(records: Records, codes: Mapping[str, str]) -> dict[str, int]:
    """Move the records of these methods that other code made to a folder beside them; return how many of each."""
    if not codes or not any(records.files()):
        return {}
    with records.lock():
        table = load_table(records.folder)
        made = zip(table["method"].to_pylist(), table["code"].to_pylist(), strict=True)
        present = [codes.get(method, code) == code for method, code in made]
        aside = table.filter([not here for here in present])
        if len(aside):
            write_table(aside, records.folder, f"{SUPERSEDED}/records")
            _join(records, records.loose() + records.joined(), table.filter(present))
    return dict(Counter(aside["method"].to_pylist()))


def _join(records: Records, sources: list[Path], table: "pa.Table") -> None:
    """Write the rows to keep into one file and delete the sources, but nothing that was written since."""
    target = write_table(table, records.folder, "compact/joined")
    for path in sources:
        if path != target:
            path.unlink(missing_ok=True)
