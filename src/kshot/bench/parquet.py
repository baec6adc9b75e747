"""How records lie in parquet files: their columns, and the seal by which one changed bit is noticed.

A file carries the sha256 of its own bytes inside its parquet footer, taken while that place held zeros. It stays an
ordinary parquet file for every other reader.
"""

import json
import logging
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kshot.bench.record import CellFacts, Record
from kshot.bench.study import Study
from kshot.files import BLANK, is_proven, stamped, write_bytes
from kshot.types import BALANCED

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"kshot.sha256"
# In the footer (thrift's compact protocol) a value of 64 characters follows its key behind these two bytes.
MARK = KEY + b"\x18\x40"
PLACE = b"kshot.place"
# The version before files were sealed; anything later without a seal has lost it.
UNSEALED_VERSIONS = {"0.1.0"}
FOLDER = "damaged"
# What the rows of files without such a column mean.
LATER_COLUMNS = {"profile": BALANCED, "code": ""}

log = logging.getLogger(__name__)
_told: set[Path] = set()


def table(study: Study, facts: CellFacts, records: Sequence[Record]) -> "pa.Table":
    """The records of one cell as a table with the schema of every records file."""
    import pyarrow as pa

    shared = {"study": study.name, "study_hash": study.hash, "version": written_by()}
    return pa.Table.from_pylist([shared | _row(facts, record) for record in records], schema=schema())


@cache
def written_by() -> str:
    """The version that every row names; to find it costs milliseconds."""
    return version("kshot")


def schema() -> "pa.Schema":
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int32()
    return pa.schema(
        [
            *whose_columns(),
            ("method", text),
            ("title", text),
            ("sees", pa.list_(text)),
            ("status", text),
            ("reason", text),
            ("accuracy", number),
            ("n_test", whole),
            ("n_correct", whole),
            ("hits", pa.binary()),
            ("selected", text),
            ("selected_from", text),
            ("views", text),
            ("lambda_js", number),
            ("d2", number),
            ("v", number),
            ("share", number),
            ("n_classes", whole),
            ("simulated", pa.bool_()),
            ("protocol", text),
            ("dtype", text),
            ("version", text),
            ("code", text),
            ("feature_hashes", text),
            ("fit_seconds", number),
            ("score_seconds", number),
        ]
    )


def whose_columns() -> "list[tuple[str, pa.DataType]]":
    """The study and the cell, with which every row begins."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int32()
    cell = {"dataset": text, "backbone": text, "tier": text, "shots": whole, "seed": whole, "profile": text}
    return [("study", text), ("study_hash", text), *cell.items()]


def with_later_columns(table: "pa.Table") -> "pa.Table":
    """A table that an earlier version wrote, with the columns that came since."""
    import pyarrow as pa

    for name, default in LATER_COLUMNS.items():
        if name not in table.column_names:
            table = table.append_column(name, pa.array([default] * table.num_rows, pa.string()))
    return table


def _row(facts: CellFacts, record: Record) -> dict[str, Any]:
    cell = record.cell
    return {
        "dataset": cell.dataset,
        "backbone": cell.backbone,
        "tier": cell.tier,
        "shots": cell.shots,
        "seed": cell.seed,
        "profile": cell.profile,
        "method": record.method,
        "title": record.title,
        "sees": sorted(record.sees),
        "status": record.status,
        "reason": record.reason,
        "accuracy": record.accuracy,
        "n_test": record.n_test,
        "n_correct": record.n_correct,
        "hits": record.hits,
        "selected": json.dumps(record.selected, sort_keys=True),
        "selected_from": json.dumps(record.selected_from, sort_keys=True),
        "views": json.dumps(record.views, sort_keys=True),
        "lambda_js": facts.lambda_js,
        "d2": facts.d2,
        "v": facts.v,
        "share": facts.share,
        "n_classes": facts.n_classes,
        "simulated": facts.simulated,
        "protocol": facts.protocol,
        "dtype": facts.dtype,
        "code": record.code,
        "feature_hashes": json.dumps(facts.feature_hashes, sort_keys=True),
        "fit_seconds": record.fit_seconds,
        "score_seconds": record.score_seconds,
    }


def write_sealed(table: "pa.Table", path: Path, *, statistics: bool = True, named: bool = False) -> None:
    """Write a table whole, with its own hash inside; a `named` file is damaged under any other name.

    Statistics repeat the least and the largest value of a column.
    """
    if named:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), PLACE: _place_in_folder(path)})
    write_bytes(path, sealed(table, statistics))


def sealed(table: "pa.Table", statistics: bool = True) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    blank = table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: BLANK})
    pq.write_table(blank, sink, compression="zstd", write_page_checksum=True, write_statistics=statistics)
    content = sink.getvalue().to_pybytes()
    place = _place_of_hash(content)
    return stamped(content, place)


def intact_only(paths: Iterable[Path]) -> list[Path]:
    """The files that can be trusted; the others are named, and count as missing.

    A file that another process joined and removed meanwhile is kept in the list: reading it will tell.
    """
    return [path for path in paths if not is_damaged(path)]


def set_aside(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Move damaged files out of the way, so that their cells are computed again; nothing is deleted."""
    return [move_aside(folder, path) for path in paths if is_damaged(path)]


def move_aside(folder: Path, path: Path) -> Path:
    """Out of the way of all readers, under a name that says where it was."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "-", str(path.relative_to(folder)))
    target = folder / FOLDER / name
    target.parent.mkdir(exist_ok=True)
    path.replace(target)
    log.warning("It is kept as %s.", target)
    return target


def contradictory_rows(table: "pa.Table") -> np.ndarray:
    """Rows whose accuracy, counts and hits do not say the same."""
    scored = np.array([status == "ok" for status in table["status"].to_pylist()], bool)
    hits = [value or b"" for value in table["hits"].to_pylist()]
    lengths = np.array([len(value) for value in hits])
    ones = np.unpackbits(np.frombuffer(b"".join(hits), np.uint8)).reshape(-1, 8).sum(axis=1)
    sums = np.concatenate([[0], np.cumsum(ones)])
    ends = np.cumsum(lengths)
    counted = sums[ends] - sums[ends - lengths]
    n_test = table["n_test"].to_numpy()
    n_correct = table["n_correct"].fill_null(-1).to_numpy()
    accuracy = table["accuracy"].fill_null(-1.0).to_numpy()
    agree = (counted == n_correct) & (lengths == -(-n_test // 8))
    agree &= np.abs(accuracy * n_test - n_correct) < 1e-6 * np.maximum(n_test, 1)
    return np.flatnonzero(scored & ~agree)


def is_damaged(path: Path) -> bool:
    """Whether one byte is not as it was written, or the file is not where it was written; told once."""
    try:
        about = path.stat()
        damaged = not _is_intact(path, about.st_ino, about.st_size, about.st_mtime_ns)
    except FileNotFoundError:
        return False
    if damaged and path not in _told:
        _told.add(path)
        log.warning("%s is damaged and counts as missing; `kshot run` computes its cells again.", path)
    return damaged


@lru_cache(maxsize=20_000)
def _is_intact(path: Path, inode: int, size: int, changed: int) -> bool:
    content = path.read_bytes()
    place = _place_of_hash(content)
    if place < 0:
        return _was_never_sealed(content)
    if PLACE in content and _as_entry(_place_in_folder(path)) not in content:
        return False
    return is_proven(content, place)


def _place_in_folder(path: Path) -> bytes:
    return "/".join(path.parts[-4:]).encode()


def _as_entry(value: bytes) -> bytes:
    """The place as it stands in the footer: behind its key a mark for text and the length in sevens of bits."""
    length, rest = b"", len(value)
    while rest > 0x7F:
        length += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return PLACE + b"\x18" + length + bytes([rest]) + value


def _place_of_hash(content: bytes) -> int:
    """Where the hash stands in the footer; −1 where there is none."""
    footer = int.from_bytes(content[-8:-4], "little")
    mark = content.rfind(MARK, max(0, len(content) - 8 - footer))
    return mark + len(MARK) if mark >= 0 else -1


def _was_never_sealed(content: bytes) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
        return set(table["version"].to_pylist()) <= UNSEALED_VERSIONS and not len(contradictory_rows(table))
    except (pa.ArrowException, OSError, KeyError):
        return False
