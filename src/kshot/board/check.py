"""Whether a submission holds what it says: every sentence that comes out is a reason to refuse it."""

import json
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kshot.bench.record import CELL, contradictory_rows, read_header, schema
from kshot.bench.records import Records, cell_place
from kshot.bench.study import Cell
from kshot.board.rules import Board, KnownCell
from kshot.board.submission import RECORDS, Submission
from kshot.board.wheel import check_wheel
from kshot.errors import KshotError
from kshot.files import is_damaged, read_tables
from kshot.stats.answers import RELATIVE_ERROR, Answers, answers_table

if TYPE_CHECKING:
    import pyarrow as pa

# What reading one submission may take; a small file can open to any size.
MEMORY = 2 * 2**30
# Other processors round otherwise; other shots are a hundred times as far away.
TOLERANCE = 1e-4
LONGEST_TEXT = 2**16
MEASURED = ("lambda_js", "d2", "v", "share")
Hits = dict[Cell, bytes]


def refusals(submission: Submission, board: Board) -> Iterator[str]:
    """Wheel, header, records and answers, each only where those before it are sound."""
    codes = check_wheel(submission.wheel, submission.entry.method)
    _check_header(submission, board)
    with bounded_memory():
        table = records_table(submission, board)
        found = list(_rows(submission, board, table, codes))
        yield from found or _answers(submission, board, table)


def records_table(submission: Submission, board: Board) -> "pa.Table":
    """The records, one a cell of the board; read only if the file announces no more than that."""
    names = [name for name in submission.files if "/compact/" in name]
    if len(names) != 1:
        raise KshotError(f"{submission.name} must hold one file of records, not {len(names)}; submit it again.")
    return _table(submission, names[0], schema(), len(board.cells))


def hits_of(table: "pa.Table") -> Hits:
    """Which pictures were right, cell by cell."""
    columns = (table[name].to_pylist() for name in (*CELL, "hits", "status"))
    return {Cell(*place): hits for *place, hits, status in zip(*columns, strict=True) if status == "ok"}


def copied_from(hits: Hits, others: Mapping[str, Hits]) -> Iterator[str]:
    """Other entries with the very same answers in every cell that both have."""
    for name, theirs in others.items():
        common = hits.keys() & theirs.keys()
        if len(common) > len(hits) // 2 and all(hits[cell] == theirs[cell] for cell in common):
            yield f"in all {len(common)} cells it has the hits of {name}, picture by picture"


@contextmanager
def bounded_memory(most: int = MEMORY) -> Iterator[None]:
    """Memory beyond what is in use now ends in an error and not in a dead machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + most
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _check_header(submission: Submission, board: Board) -> None:
    entry = submission.entry
    if entry.board != board.hash:
        raise KshotError(
            f"it belongs to board {entry.board[:16]} and not to {board.hash}, study {board.base.name}: other features "
            "or other cells."
        )
    header, study = read_header(submission.records), board.study_of(submission.spec)
    if header["study"] != json.loads(study.to_json()) or header["hash"] != study.hash:
        raise KshotError(f"study.json is not study {board.base.name} with {entry.method} alone, hash {study.hash}.")
    if header["features"] != board.hashes:
        raise KshotError("study.json names other features than this board has.")


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


def _rows(submission: Submission, board: Board, table: "pa.Table", codes: set[str]) -> Iterator[str]:
    study, rows = board.study_of(submission.spec), table.to_pylist()
    cells = [Cell(*(row[name] for name in CELL)) for row in rows]
    missing, foreign = set(board.cells) - set(cells), set(cells) - set(board.cells)
    if missing or foreign or len(cells) != len(set(cells)):
        yield f"{len(missing)} cells are missing, {len(foreign)} are foreign, {len(cells) - len(set(cells))} double"
        return
    if len(wrong := contradictory_rows(table)):
        yield f"accuracy, counts and hits contradict each other in {len(wrong)} cells"
    for number, (cell, row) in enumerate(zip(cells, rows, strict=True)):
        why = _contradiction(row, rows[0], board.known[cell], submission.entry.method, study.hash, codes)
        if why:
            yield f"{cell.in_words()}: {why}"
        if number and why:
            return


def _contradiction(
    row: dict[str, Any], first: dict[str, Any], known: KnownCell, method: str, study_hash: str, codes: set[str]
) -> str:
    facts = asdict(known.facts)
    expected = {name: facts[name] for name in ("simulated", "dtype", "n_classes", "protocol")}
    expected |= {"method": method, "study_hash": study_hash, "n_test": len(known.truth)}
    expected |= {name: first[name] for name in ("code", "version", "title", "sees")}
    for name, value in expected.items():
        if row[name] != value:
            return f"{name} is {str(row[name])[:60]} and not {str(value)[:60]}"
    if _json(row["feature_hashes"]) != facts["feature_hashes"]:
        return "it was computed on other features"
    if not all(_close(row[name], facts[name]) for name in MEASURED):
        return "its shots are not those of this board"
    if row["code"] not in codes:
        return "it was computed by other code than the wheel holds"
    if row["status"] not in ("ok", "undefined"):
        return f"the method failed ({str(row['reason'])[:100]})"
    if not row["sees"] or "test" in row["sees"]:
        return "it sees the test labels, or says nothing of what it sees"
    texts = (row["selected"], row["selected_from"])
    if not all(isinstance(_json(text), dict) and len(text) <= LONGEST_TEXT for text in texts):
        return "what it fitted cannot be read"
    seconds = (row["fit_seconds"], row["score_seconds"])
    if not all(isinstance(value, float) and 0 <= value < 1e9 for value in seconds):
        return "its seconds are no durations"
    return ""


def _answers(submission: Submission, board: Board, table: "pa.Table") -> Iterator[str]:
    hits = hits_of(table)
    wanted = {f"{RECORDS}/{cell_place(cell, 'answers')}": cell for cell in hits}
    files = {name.rsplit(".", 2)[0]: name for name in submission.files if "/answers/" in name}
    held = sum("/answers/" in name for name in submission.files)
    if files.keys() != wanted.keys() or held != len(files):
        yield f"{held} files of answers for {len(wanted)} cells, or of other cells"
        return
    for place, cell in wanted.items():
        truth = board.known[cell].truth
        rows = _table(submission, files[place], _answers_schema(), len(truth))
        nulls = sum(rows[name].null_count for name in rows.column_names if name != "top_surprise")
        if nulls or len(rows) != len(truth) or set(rows["method"].to_pylist()) != {submission.entry.method}:
            yield f"{cell.in_words()}: the answers are not one method's about {len(truth)} pictures"
            return
        answers = Records(submission.records).answers(cell)[submission.entry.method]
        bits = np.unpackbits(np.frombuffer(hits[cell], np.uint8))[: len(truth)].astype(bool)
        why = _impossible(answers, board.known[cell], bits)
        if why:
            yield f"{cell.in_words()}: {why}"
            return


def _impossible(answers: Answers, known: KnownCell, hits: np.ndarray) -> str:
    if (answers.truth != known.truth).any():
        return "the answers name other test labels than this board has"
    if (answers.predicted >= known.facts.n_classes).any() or answers.n_classes != known.facts.n_classes:
        return "the answers name classes that the dataset does not have"
    if (answers.hits != hits).any():
        return f"accuracy and answers disagree about {np.count_nonzero(answers.hits != hits)} pictures"
    numbers = np.stack([answers.true_surprise, answers.top_surprise, answers.squares])
    room = 1 + 8 * RELATIVE_ERROR
    sound = np.isfinite(numbers).all() and (numbers >= 0).all() and (answers.squares <= room).all()
    if not sound or (np.exp(-2 * answers.top_surprise) > room * answers.squares + 1e-6).any():
        return "the answers hold numbers that no probabilities give"
    return ""


@cache
def _answers_schema() -> "pa.Schema":
    none, few = np.zeros(0, np.int64), np.zeros(0)
    return answers_table({"": Answers(none, none, few, few, few, 1)}).schema


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _close(found: float | None, known: float | None) -> bool:
    if found is None or known is None:
        return found is known
    return isclose(found, known, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
