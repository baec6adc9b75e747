"""The verdict on a submission: *verified*, *declared* or *refused*, as a file that anybody can compute again."""

import json
import platform
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kshot.bench.isolation import NEEDS_BUBBLEWRAP, can_isolate
from kshot.bench.record import CELL
from kshot.bench.records import load_table
from kshot.bench.study import Study, bundled_studies, load_study
from kshot.board.check import refusals
from kshot.board.recompute import chosen_cells, recompute
from kshot.board.rules import Board, open_board
from kshot.board.submission import Submission, read_submission
from kshot.board.tables import Hits, bounded_memory, copied_from, hits_of, records_table
from kshot.errors import KshotError, one_line, unknown

VERIFIED, DECLARED, REFUSED = "verified", "declared", "refused"
LIBRARIES = ("kshot", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class BoardVerdict:
    """Verdict on the files of one digest. `cells` were drawn by `seed` and run again; without any, the verdict is
    *declared* at best."""

    entry: str
    digest: str
    study: str
    board: str
    verdict: str
    reasons: tuple[str, ...]
    seed: int | None
    cells: tuple[tuple[Any, ...], ...]
    versions: Mapping[str, str]
    date: str

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Recomputation:
    """How many cells are run again, and the seed that chooses them: a random one unless given, so that nobody knows
    the cells before."""

    cells: int
    seed: int | None = None
    seconds: int = 600
    workers: int = 1


def judge_folder(
    folder: Path,
    features: Path,
    study: Study | None = None,
    kept: Sequence[Path] | None = None,
    again: Recomputation | None = None,
    day: date | None = None,
) -> BoardVerdict:
    """Check a submission, and run cells of it again if `again` is given.

    `kept`: compare its hits with those of the entries beside it and of all methods in these records. Records that are
    not there, and a machine without bubblewrap or the board's features, are errors and no verdict.
    """
    if again and not can_isolate():
        raise KshotError(NEEDS_BUBBLEWRAP)
    about: dict[str, Any] = {"digest": "", "study": "", "board": "", "seed": None, "cells": ()}
    try:
        submission = read_submission(folder)
        about |= {"digest": submission.digest, "study": submission.entry.study, "board": submission.entry.board}
        base = study or _named_study(submission)
    except KshotError as error:
        return _verdict(folder, [str(error)], day, about)
    board = open_board(base, features)
    others = {} if kept is None else _hits_beside(folder, board) | kept_hits(kept)
    try:
        reasons, table = _examined(submission, board, others)
        if again and not reasons:
            seed = secrets.randbelow(2**32) if again.seed is None else again.seed
            rows = chosen_cells(table.to_pylist(), again.cells, seed)
            about |= {"seed": seed, "cells": tuple(tuple(row[name] for name in CELL) for row in rows)}
            reasons = recompute(submission, board, rows, again.seconds, again.workers)
    except KshotError as error:
        reasons = [str(error)]
    return _verdict(folder, reasons, day, about)


def _verdict(folder: Path, reasons: Sequence[str], day: date | None, about: Mapping[str, Any]) -> BoardVerdict:
    said = REFUSED if reasons else VERIFIED if about["cells"] else DECLARED
    versions = {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}
    today = (day or datetime.now(UTC).date()).isoformat()
    found = tuple(map(visible, reasons))
    return BoardVerdict(visible(folder.name), verdict=said, reasons=found, versions=versions, date=today, **about)


def visible(text: str) -> str:
    """Control characters, and bytes that are no text, as their numbers: others' names reach terminals and pages."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _examined(submission: Submission, board: Board, others: Mapping[str, Hits]) -> tuple[list[str], Any]:
    """Reasons to refuse it, and its records."""
    try:
        reasons = list(refusals(submission, board))
        with bounded_memory():
            table = records_table(submission, board)
            return reasons or list(copied_from(hits_of(table), others)), table
    except KshotError:
        raise
    except Exception as error:
        # Whatever a stranger's file makes a reader stumble over is a fault of the file.
        raise KshotError(f"{submission.name} cannot be read ({one_line(error)[:200]}).") from None


def _named_study(submission: Submission) -> Study:
    known = bundled_studies()
    name = submission.entry.study
    if name not in known:
        raise KshotError(unknown("study", name[:60], known, "Give the study's file with --study."))
    return load_study(known[name])


def _hits_beside(folder: Path, board: Board) -> dict[str, Hits]:
    """Hits of the entries beside a submission that are on the same board."""
    found: dict[str, Hits] = {}
    for path in sorted(folder.parent.iterdir()):
        # Another entry that cannot be read is no fault of this one.
        with suppress(Exception):
            if path != folder and (other := read_submission(path)).entry.board == board.hash:
                with bounded_memory():
                    found[other.name] = hits_of(records_table(other, board))
    return found


def kept_hits(kept: Sequence[Path]) -> dict[str, Hits]:
    """Hits of all methods in these records."""
    found: dict[str, Hits] = {}
    for records in kept:
        table = load_table(records, [*CELL, "method", "hits", "status"])
        methods = table["method"].to_pylist()
        for method in dict.fromkeys(methods):
            found[method] = hits_of(table.filter([name == method for name in methods]))
    return found


def read_verdict(path: Path) -> BoardVerdict | None:
    """None where there is no verdict."""
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        lists = {"reasons": tuple(content["reasons"]), "cells": tuple(map(tuple, content["cells"]))}
        return BoardVerdict(**(content | lists))
    except (ValueError, KeyError, TypeError) as error:
        raise KshotError(f"{path} is no verdict of kshot ({one_line(error)}).") from None
