"""Check what a submission holds; each sentence that a check gives is a reason to refuse it."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from math import isclose
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from kshot.bench.record import cells_of, read_header
from kshot.bench.records import cell_place
from kshot.bench.study import MethodSpec
from kshot.board.rules import Board, KnownCell
from kshot.board.submission import RECORDS, Submission
from kshot.board.tables import answers_rows, bounded_memory, records_table
from kshot.board.wheel import check_wheel
from kshot.errors import KshotError
from kshot.report.context import Context
from kshot.report.tables import make_table
from kshot.report.verdict import verdict
from kshot.report.write import page
from kshot.stats.answers import RELATIVE_ERROR, answers_from_table
from kshot.stats.panel import panel
from kshot.types import IMPORTED, Evidence

if TYPE_CHECKING:
    import pyarrow as pa

# Other processors round otherwise; other shots are a hundred times as far away.
TOLERANCE = 1e-4
LONGEST_TEXT = 2**16
MEASURED = ("lambda_js", "d2", "v", "share")
EVIDENCE = frozenset(get_args(Evidence)) - {"test"}
NO_EVIDENCE = frozenset({"fixed", "encoder", "assumed"})
# What the board's page shows beside its charts.
TABLES = ("leaderboard", "transductive", "metrics", "cost")


def refusals(submission: Submission, board: Board) -> Iterator[str]:
    """Check wheel, header, records and answers in this order; stop at the first that is wrong."""
    codes = check_wheel(submission.wheel, submission.entry.method)
    _check_header(submission, board)
    with bounded_memory():
        table = records_table(submission, board)
        found = list(_cells(submission, board, table, codes))
        yield from found
        if not found:
            # What heads fitted is of any form: what a page cannot show fails here and not when the board is built.
            alone = panel(table)
            page(alone, [make_table(key, alone, Context()) for key in TABLES], Context(), [], verdict(alone))


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


def _cells(submission: Submission, board: Board, table: "pa.Table", codes: set[str]) -> Iterator[str]:
    """Say what is wrong in the first bad cell."""
    rows, cells = table.to_pylist(), cells_of(table)
    missing, foreign = set(board.cells) - set(cells), set(cells) - set(board.cells)
    if missing or foreign or len(cells) != len(set(cells)):
        twice = len(cells) - len(set(cells))
        yield f"{len(missing)} cells are missing, {len(foreign)} are not cells of this board, {twice} are there twice"
        return
    statuses: dict[tuple, set[str]] = {}
    for cell, row in zip(cells, rows, strict=True):
        statuses.setdefault((cell.backbone, cell.tier, cell.shots, cell.profile), set()).add(row["status"])
    if any(len(found) > 1 for found in statuses.values()):
        yield "whether the method is defined depends on the dataset or the seed, not on the number of shots alone"
        return
    files = {name.rsplit(".", 2)[0]: name for name in submission.files if "/answers/" in name}
    places = {f"{RECORDS}/{cell_place(cell, 'answers')}": row["status"] for cell, row in zip(cells, rows, strict=True)}
    wanted = {place for place, status in places.items() if status == "ok"}
    held = sum("/answers/" in name for name in submission.files)
    if files.keys() != wanted or held != len(files):
        yield f"{held} files of answers for {len(wanted)} cells, or of other cells"
        return
    for cell, row, place in zip(cells, rows, places, strict=True):
        known, hits = board.known[cell], None
        why = _contradiction(row, rows[0], board, known, submission.entry.method)
        if not why and row["code"] not in codes:
            why = "it was computed by other code than the wheel holds"
        if not why and place in files:
            content = answers_rows(submission, files[place], len(known.truth))
            why, hits = _impossible(content, known, submission.entry.method)
        if why := why or _arithmetic(row, hits):
            yield f"{cell.in_words()}: {why}"
            return


def _contradiction(row: dict[str, Any], first: dict[str, Any], board: Board, known: KnownCell, method: str) -> str:
    """Compare what a row says about its cell and method with what the board knows."""
    facts = asdict(known.facts)
    expected = {name: facts[name] for name in ("simulated", "dtype", "n_classes", "protocol")}
    expected |= {"method": method, "study": board.base.name, "n_test": len(known.truth)}
    expected |= {"study_hash": board.study_of(MethodSpec(method, method)).hash}
    expected |= {name: first[name] for name in ("code", "version", "title", "sees")}
    for name, value in expected.items():
        if row[name] != value:
            return f"{name} is {str(row[name])[:60]} and not {str(value)[:60]}"
    if _json(row["feature_hashes"]) != facts["feature_hashes"]:
        return "it was computed on other features"
    if not all(_close(row[name], facts[name]) for name in MEASURED):
        return "its shots are not those of this board"
    if row["status"] not in ("ok", "undefined"):
        return f"the method failed ({str(row['reason'])[:100]})"
    if not row["sees"] or not set(row["sees"]) <= EVIDENCE:
        return f"it sees the test labels, or says nothing of what it sees: allowed are {', '.join(sorted(EVIDENCE))}"
    if row["version"] == IMPORTED or not re.fullmatch(r"[\w.+-]{1,40}", row["version"] or "", re.ASCII):
        return "it does not name the version of kshot that computed it"
    if not all(isinstance(row[name], str) and len(row[name]) <= LONGEST_TEXT for name in ("title", "reason", "views")):
        return "title, reason or views are not text, or are too long"
    fitted, chosen = (_named(row[name]) for name in ("selected", "selected_from"))
    if fitted is None or chosen is None or not all(isinstance(word, str) for word in chosen.values()):
        return "what it fitted cannot be read"
    if foreign := set(chosen.values()) - EVIDENCE - NO_EVIDENCE:
        return f"it chose {', '.join(chosen)} from {', '.join(sorted(foreign))[:60]}, which no head may do"
    seconds = (row["fit_seconds"], row["score_seconds"])
    if not all(isinstance(value, float) and 0 <= value < 1e9 for value in seconds):
        return "its seconds are negative or not finite"
    return ""


def _arithmetic(row: dict[str, Any], hits: np.ndarray | None) -> str:
    """The results of a row follow from its answers; a cell where the method is undefined has neither."""
    if hits is None:
        expected: dict[str, Any] = {"accuracy": None, "n_correct": None, "hits": b""}
    else:
        if (wrong := _differing(row["hits"], hits)) > 0:
            return f"accuracy and answers disagree about {wrong} pictures"
        expected = {"hits": np.packbits(hits).tobytes(), "n_correct": int(hits.sum()), "accuracy": float(hits.mean())}
    for name, value in expected.items():
        if row[name] != value:
            return f"accuracy, counts and hits contradict each other: {name} is {str(row[name])[:30]}"
    return ""


def _differing(kept: bytes | None, hits: np.ndarray) -> int:
    bits = np.unpackbits(np.frombuffer(kept or b"", np.uint8))[: len(hits)].astype(bool)
    return int(np.count_nonzero(bits != hits)) if len(bits) == len(hits) else len(hits)


def _impossible(table: "pa.Table", known: KnownCell, method: str) -> tuple[str, np.ndarray]:
    """Why these cannot be the answers of a head about the cell's pictures, and which of them are right."""
    nulls = sum(table[name].null_count for name in table.column_names if name != "top_surprise")
    if nulls or len(table) != len(known.truth) or set(table["method"].to_pylist()) != {method}:
        return f"the answers are not one method's about {len(known.truth)} pictures", known.truth == -1
    answers = answers_from_table(table)[method]
    if (answers.truth != known.truth).any():
        return "the answers name other test labels than this board has", answers.hits
    if (answers.predicted >= known.facts.n_classes).any() or set(table["n_classes"].to_pylist()) != {answers.n_classes}:
        return "the answers name classes that the dataset does not have", answers.hits
    if answers.n_classes != known.facts.n_classes:
        return f"the answers are about {answers.n_classes} classes", answers.hits
    numbers = np.stack([answers.true_surprise, answers.top_surprise, answers.squares])
    room = 1 + 8 * RELATIVE_ERROR
    sound = np.isfinite(numbers).all() and (numbers >= 0).all() and (answers.squares <= room).all()
    # Of two classes both probabilities add to the squares.
    least = np.exp(-2 * answers.top_surprise) + np.where(answers.hits, 0, np.exp(-2 * answers.true_surprise))
    if not sound or (np.maximum(least, 1 / answers.n_classes) > room * answers.squares + 1e-6).any():
        return "the answers hold numbers that no probabilities give", answers.hits
    return "", answers.hits


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _named(text: Any) -> dict[str, Any] | None:
    """Values by their names, or None."""
    content = _json(text) if isinstance(text, str) and len(text) <= LONGEST_TEXT else None
    return content if isinstance(content, dict) else None


def _close(found: float | None, known: float | None) -> bool:
    if found is None or known is None:
        return found is known
    return isclose(found, known, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
