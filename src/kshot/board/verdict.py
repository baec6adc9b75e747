"""The verdict on a submission: *verified*, *declared* or *refused*, as a file that anybody can compute again."""

import json
import platform
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kshot.bench.record import CELL
from kshot.bench.records import load_table
from kshot.bench.study import Study, bundled_studies, load_study
from kshot.board.check import Hits, bounded_memory, copied_from, hits_of, records_table, refusals
from kshot.board.recompute import chosen_cells, recompute
from kshot.board.rules import Board, open_board
from kshot.board.submission import Submission, read_submission
from kshot.errors import KshotError, one_line, unknown

VERIFIED, DECLARED, REFUSED = "verified", "declared", "refused"
LIBRARIES = ("kshot", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class BoardVerdict:
    """On the files of one digest. `cells` were run again, drawn by `seed`; without any it is declared at best."""

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
    """How many cells are run again and which: the seed is drawn where none is given, so that nobody knows the cells
    before."""

    cells: int
    seed: int | None = None
    seconds: int = 600
    workers: int = 1


def judge_folder(
    folder: Path,
    features: Path,
    study: Study | None = None,
    others: Mapping[str, Hits] | None = None,
    again: Recomputation | None = None,
    day: date | None = None,
) -> BoardVerdict:
    """Check a submission, and run cells of it again where that is asked for."""
    about: dict[str, Any] = {"digest": "", "study": "", "board": "", "seed": None, "cells": ()}
    try:
        submission = read_submission(folder)
        about |= {"digest": submission.digest, "study": submission.entry.study, "board": submission.entry.board}
        board = open_board(study or named_study(submission), features)
        reasons, table = examined(submission, board, others or {})
        if again and not reasons:
            seed = secrets.randbelow(2**32) if again.seed is None else again.seed
            rows = chosen_cells(table.to_pylist(), again.cells, seed)
            about |= {"seed": seed, "cells": tuple(tuple(row[name] for name in CELL) for row in rows)}
            reasons = recompute(submission, board, rows, again.seconds, again.workers)
    except KshotError as error:
        reasons = [str(error)]
    said = REFUSED if reasons else VERIFIED if about["cells"] else DECLARED
    versions = {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}
    today = (day or datetime.now(UTC).date()).isoformat()
    return BoardVerdict(folder.name, verdict=said, reasons=tuple(reasons), versions=versions, date=today, **about)


def examined(submission: Submission, board: Board, others: Mapping[str, Hits]) -> tuple[list[str], Any]:
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


def named_study(submission: Submission) -> Study:
    known = bundled_studies()
    name = submission.entry.study
    if name not in known:
        raise KshotError(unknown("study", name[:60], known, "Give the study's file with --study."))
    return load_study(known[name])


def sound_submissions(folder: Path) -> Iterator[Submission]:
    """Those folders in a folder whose form is right."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and not path.name.startswith("."):
            try:
                yield read_submission(path)
            except KshotError:
                continue


def other_hits(folder: Path, board: Board, kept: Sequence[Path]) -> dict[str, Hits]:
    """Of the entries beside a submission that are on the same board, and of all methods in kept records."""
    found: dict[str, Hits] = {}
    for other in sound_submissions(folder.absolute().parent):
        if other.name != folder.absolute().name and other.entry.board == board.hash:
            try:
                with bounded_memory():
                    found[other.name] = hits_of(records_table(other, board))
            except KshotError:
                continue
    return found | kept_hits(kept)


def kept_hits(kept: Sequence[Path]) -> dict[str, Hits]:
    """Of all methods in these records."""
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
