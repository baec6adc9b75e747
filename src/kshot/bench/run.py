"""Compute what the cache lacks of a query: joblib hands out the cells, each is written whole or not at all."""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from kshot.bench.cell import Loaded, load_cell, run_cell
from kshot.bench.query import Query
from kshot.bench.recipes import KNOB_ORACLE, PROBE, code_of
from kshot.bench.record import row, table_of
from kshot.bench.records import MANY, Records
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.data.store import Store
from kshot.errors import EvidenceError, HeadError, StudyError
from kshot.methods import registry
from kshot.progress import Progress, human_seconds
from kshot.workers import WHOLE, Shard, Workers, computed, counted, end_with, ticker

logger = logging.getLogger("kshot")
# Mistakes of a class, which no other cell would be without.
ALWAYS_FAIL = (HeadError.__name__, EvidenceError.__name__)


class Wanted(NamedTuple):
    """One record to compute: its key, the method, its recipe in words, and the hashes of the features it looks at."""

    key: str
    spec: MethodSpec
    recipe: Mapping[str, Any]
    features: Mapping[str, str]


class CellTask(NamedTuple):
    """The records of one cell that are missing; `hashes` are those of its features."""

    cell: Cell
    hashes: str
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True)
class RunSetting:
    """What all tasks share: `pulse` is a folder where workers of this machine count what they finished, `paths` the
    driver's places of modules."""

    study: Study
    features: Path | Store
    records: Path
    driver: int
    pulse: str
    paths: tuple[str, ...]


def fill(
    asked: Query, features: Path | Store, records: Records, workers: Workers, shard: Shard = WHOLE, retry: bool = False
) -> int:
    """Compute what the cache lacks; returns how many records stay missing because their workers died.

    Shards divide all cells and not the missing ones, so that a shard keeps its share when it is resumed.
    """
    mine = list(asked.cells)[shard.index :: shard.count]
    tasks = missing_tasks(asked, mine, records, retry)
    todo = sum(len(task.wanted) for task in tasks)
    whole = sum(bool(one.key) for cell in mine for one in asked.cells[cell].values())
    share = f" in shard {shard.index}/{shard.count}" if shard.count > 1 else ""
    thin = f", {len(asked.dropped)} left out (thin pool)" if asked.dropped else ""
    logger.info(
        f"{asked.study.name}: {len(asked.cells)} cells{thin}, {whole - todo} records there, {todo} to compute{share}"
        f"{f' with {workers.count} workers' if workers.backend == 'loky' and todo else ''}."
    )
    if not tasks:
        return 0
    start = time.perf_counter()
    with Progress("records", todo) as progress, tempfile.TemporaryDirectory(prefix="kshot-") as pulse:
        # Workers outlive a run, so that their current folder may be another.
        where = (features if isinstance(features, Store) else features.absolute()), records.folder.absolute()
        setting = RunSetting(asked.study, *where, os.getpid(), pulse, tuple(sys.path))
        with counted(Path(pulse), progress):
            _compute_all(tasks, setting, records, workers, shard)
    records.compact()
    lost = sum(len(task.wanted) for task in missing_tasks(asked, mine, records))
    if lost:
        logger.warning(
            f"not finished: {lost} of {todo} records are missing in {records.folder}, because their workers ended. Run "
            "the same command again, with fewer --workers if memory was short."
        )
    else:
        logger.info(f"finished in {human_seconds(time.perf_counter() - start)}; records in {records.folder}")
    return lost


def missing_tasks(asked: Query, cells: Iterable[Cell], records: Records, retry: bool = False) -> list[CellTask]:
    """The records that the cache lacks, cell by cell; with `retry` also those that failed."""
    done = records.keys(failed=not retry, answers=asked.study.answers)
    # These have no answers to keep.
    numbers = records.keys(failed=not retry) if asked.study.answers else done
    tasks = []
    for cell in cells:
        lacking = {
            one.key: one
            for one in asked.cells[cell].values()
            if one.key and one.key not in (numbers if one.spec.use.startswith((PROBE, KNOB_ORACLE)) else done)
        }
        wanted = tuple(
            Wanted(key, one.spec, asked.source.recipes[one.spec.name], asked.source.features(cell, one.spec))
            for key, one in lacking.items()
        )
        if wanted:
            tasks.append(CellTask(cell, asked.hashes_of(cell), wanted))
    return tasks


def _compute_all(tasks: list[CellTask], setting: RunSetting, records: Records, workers: Workers, shard: Shard) -> None:
    """Hand out all tasks. When a worker dies, those that were under way are tried again, one method at a time, and what
    dies once more is left out."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    while tasks:
        with workers.joined() as at_once:
            try:
                _hand_out(tasks, setting, records, shard)
                return
            except TerminatedWorkerError as error:
                logger.warning("a worker ended: %s", " ".join(str(error).split()))
                done = records.keys()
                tasks = [task for task in tasks if not {one.key for one in task.wanted} <= done]
                for task in tasks[:at_once]:
                    for one in task.wanted:
                        with suppress(TerminatedWorkerError):
                            _hand_out([task._replace(wanted=(one,))], setting, records, shard)
                tasks = tasks[at_once:]


def _hand_out(tasks: Sequence[CellTask], setting: RunSetting, records: Records, shard: Shard) -> None:
    from joblib import delayed

    for number, _ in enumerate(computed(delayed(compute)(setting, task) for task in tasks), 1):
        # Shards run side by side, and the last one joins the files.
        if number % MANY == 0 and shard.count == 1:
            records.compact(MANY)


def compute(setting: RunSetting, task: CellTask) -> None:
    """Compute the records of one cell and write them."""
    end_with(setting.driver)
    sys.path.extend(path for path in setting.paths if path not in sys.path)
    with threadpool_limits(1):
        rows = rows_of(setting, task)
    Records(setting.records).add(table_of(rows))
    for one, record in zip(task.wanted, rows, strict=True):
        mistake, _, words = record["reason"].partition(": ")
        if mistake in ALWAYS_FAIL and one.spec.use not in registry.BUILTIN:
            raise StudyError(
                f"{one.spec.name} would fail in every cell, so the run stops: {words} What is computed is kept; repair "
                "the class and run again."
            )


def rows_of(setting: RunSetting, task: CellTask) -> list[dict[str, Any]]:
    """The rows of one cell."""
    for one in task.wanted:
        _check_code(one)
    specs = [one.spec for one in task.wanted]
    views = frozenset(spec.views for spec in specs if spec.views is not None)
    stratum, prior = load_cell(Loaded(setting.study, setting.features, task.hashes, views), task.cell)
    tick = ticker(setting.pulse)
    facts, found = run_cell(task.cell, specs, stratum, prior, setting.study.answers, tick)
    return [
        row(one.key, task.cell, one.recipe, one.features, facts, record)
        for one, record in zip(task.wanted, found, strict=True)
    ]


def _check_code(one: Wanted) -> None:
    """Raise where this process would run other code than the key says."""
    kept = one.recipe.get("code")
    if kept and one.spec.head is None and code_of(one.spec) != kept:
        raise StudyError(f"the code of {one.spec.name} was edited since this session imported it. Start a new session.")
