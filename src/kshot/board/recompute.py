"""Random cells of a submission, run again from its wheel without test labels, network or anything else of this disk."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from kshot.bench.detector import IsolatedFit, compared, isolated_fit
from kshot.bench.isolation import Enclosure
from kshot.bench.record import CELL
from kshot.bench.records import Records
from kshot.bench.study import Cell
from kshot.board.rules import Board
from kshot.board.submission import Submission
from kshot.errors import KshotError
from kshot.stats.answers import Answers
from kshot.types import Array, Labelled

# Share of a cell's pictures that another processor may answer otherwise.
SLACK = 0.005
# And of the pictures of all cells together: nobody gains a tenth of a point by editing a few answers everywhere.
SLACK_IN_ALL = 0.001
# Of what is kept of the probabilities, which is rounded.
PROBABILITY_SLACK = 0.02
# Points of accuracy by which no honest method moves when classes are renumbered, or gains when labels are shuffled.
MARGIN = 5.0
# Points that a value between two values of a knob's grid may be above both.
OFF_GRID = 1.0
# A knob's whole grid is fitted in so many of the cells.
KNOB_CELLS = 3


@dataclass(frozen=True)
class Trial:
    """One cell run again: why it is refused, or else how many of its answers differ, and its accuracies (%) as it is,
    with classes renumbered, with the shots' labels shuffled, and at the best value of its knob."""

    cell: Cell
    found: tuple[str, ...]
    differing: int = 0
    pictures: int = 0
    accuracy: float = np.nan
    renumbered: float = np.nan
    shuffled: float = np.nan
    ceiling: float = np.nan


def chosen_cells(rows: list[dict[str, Any]], count: int, seed: int) -> list[dict[str, Any]]:
    """Rows of cells that have a result, drawn by a hash of the seed."""

    def number(row: dict[str, Any]) -> bytes:
        return hashlib.sha256(f"{seed} {[row[name] for name in CELL]}".encode()).digest()

    return sorted((row for row in rows if row["status"] == "ok"), key=number)[:count]


def recompute(
    submission: Submission, board: Board, rows: list[dict[str, Any]], seconds: int = 600, workers: int = 1
) -> list[str]:
    """Run the cells of these rows again; a sentence for each thing that is not as recorded in the first cell where
    something is, or in all of them together."""
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="kshot-board-") as folder, ThreadPoolExecutor(workers) as pool:
        room = Enclosure(Path(folder), seconds)
        shutil.unpack_archive(submission.wheel, room.code, "zip")
        started = [pool.submit(_trial, submission, board, row, room, k < KNOB_CELLS) for k, row in enumerate(rows)]
        for trial in (one.result() for one in started):
            if trial.found:
                # A method that never ends costs its time limit once, and not in every cell.
                pool.shutdown(wait=False, cancel_futures=True)
                return [f"{trial.cell.in_words()}: {what}" for what in trial.found]
            trials.append(trial)
    return _suspicions(trials)


def _trial(submission: Submission, board: Board, row: dict[str, Any], room: Enclosure, knob: bool) -> Trial:
    cell = Cell(*(row[name] for name in CELL))
    study = board.study_of(submission.spec)
    fit = isolated_fit(study, submission.spec, cell, row, board.features, submission.records)
    fit = replace(fit, enclosure=room)
    kept = Records(submission.records).answers(cell)[submission.entry.method]
    try:
        again = fit.answers()
        told = again.predicted
        found = [*compared(fit, told, kept.hits, SLACK), *_other_answers(again, kept)]
        if found:
            return Trial(cell, tuple(found))
        differing = int(np.count_nonzero(told != kept.predicted))
        at_values = fit.knob_predictions() if knob else []
        ceiling = max((_percent(values, fit.truth) for values in at_values), default=np.nan)
        measured = (_percent(told, fit.truth), _renumbered(fit), _shuffled(fit), ceiling)
        return Trial(cell, (), differing, len(fit.truth), *measured)
    except KshotError as error:
        return Trial(cell, (f"it fails in a process without the test labels ({error})",))


def _other_answers(again: Answers, kept: Answers) -> Iterator[str]:
    """Count the pictures whose class or probabilities differ from the kept ones."""
    n = len(kept.truth)
    if (differing := np.count_nonzero(again.predicted != kept.predicted)) > SLACK * n:
        yield f"{differing} of {n} answers differ from the kept ones"
    same = again.predicted == kept.predicted
    for name in ("true_surprise", "top_surprise", "squares"):
        now, before = getattr(again, name), getattr(kept, name)
        if (other := np.count_nonzero(same & (np.abs(now - before) > PROBABILITY_SLACK * (1 + now)))) > SLACK * n:
            yield f"the probabilities of {other} of {n} pictures differ from the kept ones ({name})"
            return


def _renumbered(fit: IsolatedFit) -> float:
    """Accuracy with the classes renumbered in text and labels: a head that knows pictures or class numbers by heart
    loses."""
    if len(fit.asked) < fit.n_classes:
        return np.nan
    new = np.random.default_rng(0).permutation(fit.n_classes)
    evidence = {
        name: Labelled(part.X, new[part.y]) if isinstance(part, Labelled) else part
        for name, part in fit.evidence.items()
    }
    if "text" in evidence:
        evidence["text"] = evidence["text"][np.argsort(new)]
    return _percent(replace(fit, evidence=evidence).predictions(), new[fit.truth])


def _shuffled(fit: IsolatedFit) -> float:
    """Accuracy with the labels of the shots shuffled, by which no honest head gains."""
    if "support" not in fit.evidence:
        return np.nan
    support = fit.evidence["support"]
    labels = np.random.default_rng(0).permutation(support.y)
    evidence = fit.evidence | {"support": Labelled(support.X, labels)}
    return _percent(replace(fit, evidence=evidence).predictions(), fit.truth)


def _suspicions(trials: list[Trial]) -> list[str]:
    """Give the reasons for a refusal that only all recomputed cells together show."""
    found = []
    differing, pictures = sum(trial.differing for trial in trials), sum(trial.pictures for trial in trials)
    if differing > max(1, SLACK_IN_ALL * pictures):
        found.append(f"{differing} of {pictures} answers in {len(trials)} cells differ from the kept ones")
    lost = _mean([trial.accuracy - trial.renumbered for trial in trials])
    if lost > MARGIN:
        found.append(f"with the classes renumbered it loses {lost:.1f} points: it knows these classes or pictures")
    gained = _mean([trial.shuffled - trial.accuracy for trial in trials])
    if gained > MARGIN:
        found.append(f"with the shots' labels shuffled it gains {gained:.1f} points")
    above = _mean([trial.accuracy - trial.ceiling for trial in trials])
    if above > OFF_GRID:
        found.append(f"it is {above:.1f} points above the best value of its own knob")
    return found


def _mean(values: list[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else np.nan


def _percent(predicted: Int[Array, " n"], truth: Int[Array, " n"]) -> float:
    return 100 * float(np.mean(predicted == truth))
