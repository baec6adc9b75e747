"""Parquet files that cannot change unnoticed: FOLDER/PLACE.DIGEST.parquet, DIGEST being a hash of place and content.

One rename puts a table and its hash in place, and two processes that write one place at once write two files.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kshot.files import write_bytes

if TYPE_CHECKING:
    import pyarrow as pa

# Hex digits of the sha256 in a file's name.
DIGITS = 16
SUFFIX = ".parquet"
DAMAGED = "damaged"

log = logging.getLogger(__name__)
_warned: set[Path] = set()


def write_table(table: "pa.Table", folder: Path, place: str) -> Path:
    """Write a table whole; what was written at the same place before stays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, write_statistics=False)
    content = sink.getvalue().to_pybytes()
    path = folder / f"{place}.{_digest(place, content)}{SUFFIX}"
    if not path.is_file() or is_damaged(folder, path):
        write_bytes(path, content)
    return path


def replace_table(table: "pa.Table", folder: Path, place: str) -> None:
    """Write a table whole, then remove what was written at the same place before."""
    now = _changed(write_table(table, folder, place))
    # Not a newer one: of two processes that write at once, neither removes the other's last file.
    for other in files_at(folder, place):
        if _changed(other) < now:
            other.unlink(missing_ok=True)


def files_at(folder: Path, place: str) -> list[Path]:
    """Files written at this place, the newest last."""
    return sorted(folder.glob(f"{place}.*{SUFFIX}"), key=lambda path: (_changed(path), path))


def place_of(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix().rsplit(".", 2)[0]


def read_tables(paths: Sequence[Path], schema: "pa.Schema", columns: Sequence[str] | None = None) -> "pa.Table":
    """The rows of the files in their order."""
    import pyarrow.parquet as pq

    if not paths:
        return schema.empty_table().select(columns or schema.names)
    # No folder's name is taken for a column.
    return pq.read_table(
        [str(path) for path in paths],
        columns=None if columns is None else list(columns),
        schema=schema,
        partitioning=None,  # pyright: ignore[reportArgumentType]
        page_checksum_verification=True,
    )


def intact_only(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """The files that are as they were written; the others are named in a warning, and count as missing."""
    return [path for path in paths if not is_damaged(folder, path)]


def is_damaged(folder: Path, path: Path) -> bool:
    """Whether content or place are not those the file was written with; False if another process removed it."""
    try:
        about = path.stat()
        damaged = not _fits_its_name(folder, path, about.st_ino, about.st_size, about.st_mtime_ns)
    except FileNotFoundError:
        return False
    if damaged and path not in _warned:
        _warned.add(path)
        log.warning("%s is damaged and counts as missing; `kshot run` computes its cells again.", path)
    return damaged


def set_aside(folder: Path, path: Path) -> Path:
    """Move a damaged file out of all readers' way, under a name that shows where it was."""
    target = folder / DAMAGED / re.sub(r"[^A-Za-z0-9._+-]", "-", str(path.relative_to(folder)))
    target.parent.mkdir(exist_ok=True)
    path.replace(target)
    log.warning("It is kept as %s.", target)
    return target


@lru_cache(maxsize=20_000)
def _fits_its_name(folder: Path, path: Path, inode: int, size: int, changed: int) -> bool:
    place = place_of(folder, path)
    return path.name == f"{place.rpartition('/')[2]}.{_digest(place, path.read_bytes())}{SUFFIX}"


def _digest(place: str, content: bytes) -> str:
    return hashlib.sha256(place.encode() + b"\0" + content).hexdigest()[:DIGITS]


def _changed(path: Path) -> int:
    """Nanoseconds; 0 if another process removed the file."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime_ns
    return 0
