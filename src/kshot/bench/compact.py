"""Joining many small files into one, and forgetting cells; safe to interrupt anywhere."""

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.bench.parquet import write_sealed
from kshot.bench.query import load_table, query
from kshot.bench.record import CELL
from kshot.bench.records import Records
from kshot.bench.study import Cell

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
        _join(records, loose + joined)
        return len(loose + joined)


def forget(records: Records, cells: Iterable[Cell]) -> int:
    """Make cells missing again; return how many there were."""
    chosen = set(cells)
    with records.lock():
        joined = records.joined()
        if joined:
            _join(records, joined + records.loose(), lambda table: [cell not in chosen for cell in _cells(table)])
        for cell in chosen:
            records.path(cell).unlink(missing_ok=True)
    return len(chosen)


def supersede(records: Records, codes: Mapping[str, str]) -> dict[str, int]:
    """Move the records of these methods that other code made to a folder beside them; how many there were of each."""
    if not codes or not any(records.files()):
        return {}
    found: Counter[str] = Counter()
    with records.lock():
        for method, code, count in query(records.folder, "select method, code, count(*) from records group by all"):
            found[method] += count if codes.get(method, code) != code else 0

        def kept(table: "pa.Table") -> list[bool]:
            made = zip(table["method"].to_pylist(), table["code"].to_pylist(), strict=True)
            present = [codes.get(method, code) == code for method, code in made]
            aside = table.filter([not here for here in present])
            write_sealed(aside, records.folder / SUPERSEDED / f"{uuid.uuid4().hex}.parquet")
            return present

        if any(found.values()):
            _join(records, records.loose() + records.joined(), kept)
    return {method: count for method, count in found.items() if count}


def _cells(table: "pa.Table") -> list[Cell]:
    return [Cell(*key) for key in zip(*(table[name].to_pylist() for name in CELL), strict=True)]


def _join(records: Records, sources: list[Path], keep: "Callable[[pa.Table], list[bool]] | None" = None) -> None:
    """One file in place of the sources, of all rows or of those to keep; what was written after the sources were
    listed stays."""
    listed = {path: _identity(path) for path in sources}
    table = load_table(records.folder)
    if keep is not None:
        table = table.filter(keep(table))
    name = hashlib.sha256("\n".join(map(str, sources)).encode()).hexdigest()[:16]
    target = records.folder / "compact" / f"{name}.parquet"
    write_sealed(table, target)
    for path, identity in listed.items():
        # Another driver may have put a new file in its place, which stays.
        if path != target and _identity(path) == identity:
            path.unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells a file from another one that takes its name later."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_mtime_ns
