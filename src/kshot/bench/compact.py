"""Joining many small files into one, and forgetting cells; safe to interrupt anywhere."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from kshot.bench.records import Records, load
from kshot.bench.schema import CELL
from kshot.bench.study import Cell
from kshot.files import write_atomically


def compact(records: Records) -> int:
    """Join everything into one file; return how many files it replaces.

    Sources are deleted only after the joined file is in place, and reads count a record once whatever copies exist,
    so a crash or another compaction at the same time costs nothing.
    """
    sources = records.loose() + records.joined()
    if not records.loose() and len(sources) < 2:
        return 0
    target = _write_joined(records, sources, forget=set())
    for path in sources:
        if path != target:
            path.unlink(missing_ok=True)
    return len(sources)


def forget(records: Records, cells: Iterable[Cell]) -> int:
    """Make cells missing again; return how many there were."""
    chosen = set(cells)
    joined = records.joined()
    if joined:
        target = _write_joined(records, joined + records.loose(), forget=chosen)
        for path in joined + records.loose():
            if path != target:
                path.unlink(missing_ok=True)
    for cell in chosen:
        records.path(cell).unlink(missing_ok=True)
    return len(chosen)


def failed_cells(records: Records) -> list[Cell]:
    from kshot.bench.records import query

    sql = f"select distinct {', '.join(CELL)} from records where status = 'failed' order by all"
    return [Cell(*row) for row in query(records.folder, sql)]


def _write_joined(records: Records, sources: list[Path], forget: set[Cell]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = load(records.folder)
    if forget:
        keys = zip(*(table[name].to_pylist() for name in CELL), strict=True)
        table = table.filter(pa.array([Cell(*key) not in forget for key in keys]))
    name = hashlib.sha256("\n".join(map(str, sources)).encode()).hexdigest()[:16]
    target = records.folder / "compact" / f"{name}.parquet"
    write_atomically(target, lambda temporary: pq.write_table(table, temporary, compression="zstd"))
    return target
