"""Changing study files, comparing records folders, counting computations."""

from pathlib import Path

from kshot.bench.record import SECONDS
from kshot.bench.records import load_table


def edit(path, old, new, to=None) -> None:
    """Replace a part of a text file that must be there, in place or as another file."""
    text = Path(path).read_text()
    assert old in text
    Path(to or path).write_text(text.replace(old, new))


def comparable(folder):
    """Everything in the records but the seconds."""
    return load_table(folder).drop_columns(list(SECONDS))


def stamps(folder) -> dict:
    """When each cell's file was written; a finished cell must never be written again."""
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("K*.parquet")}


def fits() -> int:
    return Path("fits.log").stat().st_size
