"""A run from start to end: check the study, claim the folder, compute what is missing, keep the folder small."""

import json
import logging
import os
import platform
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_limits

from kshot.bench.cell import ONE_THREAD, environment, load_batch, run_batch
from kshot.bench.compact import SUPERSEDED, compact, supersede
from kshot.bench.engines import Engine, Workload
from kshot.bench.records import RUNS, Records, records_folder
from kshot.bench.study import AnyStudy, Cell, MethodSpec, Study, load_study
from kshot.bench.work import Work, count_cells, find_work, missing_cells, present_codes, strata_of, thin_cells
from kshot.data.catalog import BAND_BACKBONE
from kshot.data.gate import failed_gates
from kshot.data.store import Store, as_store
from kshot.data.stratum import encoder_constants
from kshot.data.supports import read_supports
from kshot.errors import InputError, KshotError, StudyError, unknown
from kshot.files import is_damaged, remove_torn, set_aside, write_text
from kshot.progress import Progress, human_seconds
from kshot.types import BALANCED

# Reading thousands of small files is slow; beyond this many they are joined.
LOOSE_FILES = 1000
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StudyShard:
    """Part `index` of `count`."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "StudyShard":
        """Read i/n."""
        index, slash, count = text.partition("/")
        if slash and index.isdecimal() and count.isdecimal() and int(index) < int(count):
            return cls(int(index), int(count))
        raise InputError(f"shard '{text}' is not of the form i/n with 0 ≤ i < n, for example 0/4.")


WHOLE = StudyShard()


@dataclass(frozen=True)
class ThisProcess:
    """The engine of one worker: batch after batch in this process, with one BLAS thread."""

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None:
        with environment(ONE_THREAD), threadpool_limits(1):
            for batch in workload.batches:
                workload.run(workload.study, workload.features, workload.target, batch)
                finished(len(batch.cells))


def choose_engine(engine: Engine | str, workers: int) -> Engine:
    """The engine named `local`, `dask` (a cluster started here) or `dask:ADDRESS`; an engine is given back as it is."""
    if not isinstance(engine, str):
        return engine
    name, _, address = engine.partition(":")
    if engine == "local" and workers == 1:
        return ThisProcess()
    if engine == "local":
        if not isinstance(workers, int) or workers < 1:
            raise KshotError(f"workers must be a whole number from 1 up, not {workers!r}.")
        from kshot.bench.engines.local import LocalEngine

        return LocalEngine(workers)
    if name == "dask":
        from kshot.bench.engines.dask import DaskEngine

        return DaskEngine(workers, address or None)
    raise KshotError(unknown("engine", engine, ("local", "dask"), "For SLURM see `kshot slurm --help`."))


def with_supports(study: Study, file: Path | str | None, features: Path | str | Store) -> Study:
    """The study with the shots of a file, which are checked; as it is without a file."""
    if file is None:
        return study
    if any(grid.profiles != (BALANCED,) for grid in study.grids):
        raise StudyError("--supports gives K pictures of every class; leave other profiles out of the study.")
    store = as_store(features)
    thin = thin_cells(study, strata_of(study, store, must_be_stored=True))
    draws = ((cell.dataset, cell.backbone, cell.shots, cell.seed) for cell in study.cells() if cell not in thin)
    return replace(study, supports=read_supports(Path(file), draws, store))


def complete(
    study: AnyStudy,
    records: Path | str | None,
    features: Path | str | Store,
    engine: Engine,
    method: Sequence[str | MethodSpec] = (),
    shard: StudyShard = WHOLE,
    keep: Callable[[Cell], bool] | None = None,
) -> Path:
    """Compute what a study, or a shard of it, lacks; return the folder of its records.

    With `keep`, compute those of these cells whose features are stored.
    """
    loaded = load_study(study).with_methods(method)
    target = Records(records_folder(records, loaded.name))
    features = features if isinstance(features, Store) else Path(features)
    work = open_run(loaded, features, target, keep)
    if work.dropped and len(work.dropped) == len(work.cells):
        raise StudyError(f"no cell can be computed: {work.why_dropped}. Give fewer shots or more pictures.")
    todo = count_cells(work.batches(shard.index, shard.count))
    share = f" in shard {shard.index}/{shard.count}" if shard.count > 1 else ""
    logger.info(
        f"{loaded.name}: {len(work.cells)} cells, {len(work.dropped)} dropped (thin pool), "
        f"{work.done} done, {todo} to compute{share} with {engine!r}."
    )
    if work.whole_pool:
        spent = ", ".join(sorted({f"{cell.dataset} at K = {cell.shots}" for cell in work.whole_pool}))
        logger.warning(f"the shots are the whole pool, which is fine because no method here looks at others: {spent}.")
    start = time.perf_counter()
    with Progress("cells", todo) as progress:
        compute(work, features, target, engine, shard, progress.advance)
    check_finished(work, target, shard)
    logger.info(f"finished in {human_seconds(time.perf_counter() - start)}; records in {target.folder}")
    return target.folder


def open_run(
    study: Study, features: Path | Store, records: Records, keep: Callable[[Cell], bool] | None = None
) -> Work:
    """Check the study against features and records and make the folder its own."""
    store = as_store(features)
    work = find_work(study, store, records, keep=keep)
    banded = [(dataset, backbone) for dataset, backbone in work.strata if backbone == BAND_BACKBONE and work.missing]
    gates = {"/".join(where): reason for where, reason in failed_gates(store, banded).items()} if banded else {}
    for warning in gates.values():
        logger.warning(f"{warning}. These features fail the sanity gate: see `kshot features check`.")
    constants = {f"{name}/{encoder}": encoder_constants(store, name, encoder) for name, encoder in work.strata}
    for encoder, own in {where.split("/")[1]: own for where, own in constants.items()}.items():
        if own["logit_scale"] is not None:
            logger.info(f"{encoder}: logit scale {own['logit_scale']:.6g}, logit bias {own['logit_bias']}")
    records.claim(study, work.dropped, work.features, {"constants": constants, "ignored_gates": gates})
    remove_torn(records.folder)
    with records.lock():
        loose, joined = records.files()
        for path in (path for path in (*loose, *joined) if is_damaged(records.folder, path)):
            set_aside(records.folder, path)
    codes = present_codes(study)
    for name, count in supersede(records, codes).items() if codes else ():
        logger.warning(
            f"{name} was changed since {count} of its cells were computed; they are computed again, the old records "
            f"are kept in {records.folder / SUPERSEDED}."
        )
    if records.grows_into(study) and any(records.cell_files(cell) for cell in work.missing):
        # These cells lack methods that the study did not have; a worker skips a cell that has a file of its own.
        compact(records)
    return work


def compute(
    work: Work,
    features: Path | Store,
    records: Records,
    engine: Engine,
    shard: StudyShard = WHOLE,
    finished: Callable[[int], None] = lambda cells: None,
) -> None:
    """Compute what this shard lacks."""
    batches = work.batches(shard.index, shard.count)
    if not batches:
        return
    _log_run(records, engine, shard)
    written = 0

    def finished_and_tidied(cells: int) -> None:
        nonlocal written
        written += cells
        finished(cells)
        # Shards run side by side, and their owner joins the files when all are done.
        if written >= LOOSE_FILES and shard.count == 1:
            written = 0
            compact(records)

    engine(Workload(work.study, features, records, batches, run_batch, missing_cells, load_batch), finished_and_tidied)


def this_machine() -> dict[str, str]:
    """The machine's name and its processor: seconds compare only between runs where both are the same."""
    processor = platform.processor()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return {"machine": platform.node(), "processor": processor}


def check_finished(work: Work, records: Records, shard: StudyShard = WHOLE) -> None:
    """Raise unless every record of the run is there and the folder is still this study's."""
    if not records.header.is_file():
        logger.warning("%s was removed during the run and is written again.", records.header)
        records.claim(work.study, work.dropped, work.features)
    own, former = records.owners()
    if work.study.hash not in (own, *former):
        raise StudyError(
            f"another study took {records.folder} before this run had computed a cell. Run it again with another "
            "--records."
        )
    if own != work.study.hash:
        logger.warning("Another run added to the study of %s; `kshot status` counts the missing cells.", records.folder)
    if shard.count == 1:
        cells = [cell for cell in work.cells if cell not in work.dropped]
    else:
        cells = [cell for batch in work.batches(shard.index, shard.count) for cell in batch.cells]
    missing = missing_cells(records, work.study, {cell: work.cells[cell] for cell in cells})
    if missing:
        raise StudyError(
            f"not finished: {len(missing)} of {len(cells)} cells are missing or damaged again in {records.folder}. "
            "Run the same command again."
        )


def _log_run(records: Records, engine: Engine, shard: StudyShard) -> None:
    """Write which machine computes here; `kshot records diff` shows it when records disagree."""
    about = this_machine() | {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "kshot": version("kshot"),
        "numpy": version("numpy"),
        "engine": repr(engine),
        "shard": f"{shard.index}/{shard.count}",
        "pid": os.getpid(),
    }
    write_text(records.folder / RUNS / f"{uuid.uuid4().hex}.json", json.dumps(about, indent=1) + "\n")
