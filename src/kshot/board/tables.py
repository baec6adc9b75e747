"""Read the tables of a submission within limits of rows and memory, and find copied answers."""

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kshot.bench.record import CELL, schema
from kshot.bench.study import Cell
from kshot.board.rules import Board
from kshot.board.submission import Submission
from kshot.errors import KshotError
from kshot.files import is_damaged, read_tables
from kshot.stats.answers import Answers, answers_table

if TYPE_CHECKING:
    import pyarrow as pa

# What reading one submission may take; a small file can open to any size.
MEMORY = 2 * 2**30
# Honest heads share up to 61 % of their cells of the open benchmark.
SAME = 0.9
Hits = dict[Cell, bytes]


def records_table(submission: Submission, board: Board) -> "pa.Table":
    """The records, one a cell of the board; read only if the file announces no more than that."""
    names = [name for name in submission.files if "/compact/" in name]
    if len(names) != 1:
        raise KshotError(f"{submission.name} must hold one file of records, not {len(names)}; submit it again.")
    return _table(submission, names[0], schema(), len(board.cells))


def answers_rows(submission: Submission, name: str, most: int) -> "pa.Table":
    """One file of answers about at most so many pictures."""
    return _table(submission, name, _answers_schema(), most)


def hits_of(table: "pa.Table") -> Hits:
    """Hits of every cell with a result."""
    columns = (table[name].to_pylist() for name in (*CELL, "hits", "status"))
    return {Cell(*place): hits for *place, hits, status in zip(*columns, strict=True) if status == "ok"}


def copied_from(hits: Hits, others: Mapping[str, Hits]) -> Iterator[str]:
    """Name the entries with the same hits in at least 90 % of the cells that both have."""
    for name, theirs in others.items():
        common = hits.keys() & theirs.keys()
        same = sum(hits[cell] == theirs[cell] for cell in common)
        if len(common) > len(hits) // 2 and same >= SAME * len(common):
            yield f"in {same} of {len(common)} cells it has the hits of {name}, picture by picture"


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Limit this process to the memory that it uses now and 2 GiB more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _table(submission: Submission, name: str, expected: "pa.Schema", rows: int) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = submission.folder / name
    if is_damaged(submission.records, path):
        raise KshotError(f"{name} was changed after it was written: its hash is not the one in its name.")
    try:
        with pq.ParquetFile(path) as file:
            about = file.metadata
            if not file.schema_arrow.equals(expected) or about.num_rows > rows:
                raise KshotError(f"{name} has {about.num_rows:,} rows or columns that are not those of kshot.")
            size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
            if size > MEMORY // 8:
                raise KshotError(f"{name} opens to {size:,} bytes, which is too large.")
        return read_tables([path], expected)
    except (pa.ArrowException, MemoryError, OSError) as error:
        raise KshotError(f"{name} cannot be read ({str(error)[:100]}).") from None


@cache
def _answers_schema() -> "pa.Schema":
    none, few = np.zeros(0, np.int64), np.zeros(0)
    return answers_table({"": Answers(none, none, few, few, few, 1)}).schema
