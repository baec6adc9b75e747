"""Joining many small files into one, and forgetting cells; safe to interrupt anywhere."""

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

from kshot.bench.parquet import write_sealed
from kshot.bench.query import load_table
from kshot.bench.record import CELL
from kshot.bench.records import Records
from kshot.bench.study import Cell


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
            _join(records, joined + records.loose(), forget=chosen)
        for cell in chosen:
            records.path(cell).unlink(missing_ok=True)
    return len(chosen)


def _join(records: Records, sources: list[Path], forget: Collection[Cell] = ()) -> None:
    """One file in place of the sources; what was written after they were listed stays."""
    import pyarrow as pa

    listed = {path: _identity(path) for path in sources}
    table = load_table(records.folder)
    if forget:
        keys = zip(*(table[name].to_pylist() for name in CELL), strict=True)
        table = table.filter(pa.array([Cell(*key) not in forget for key in keys]))
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
