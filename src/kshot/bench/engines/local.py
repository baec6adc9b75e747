"""Spawned processes on this machine, one BLAS thread each.

A worker that dies leaves its cells missing, never failed: the pool is rebuilt and the cells that still have
no file are handed out again. A driver that dies takes its workers with it.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from kshot.bench.batch import run_batch
from kshot.bench.prepare import Batch
from kshot.bench.records import Records
from kshot.bench.study import Study
from kshot.errors import KshotError

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
DEATHS_WITHOUT_PROGRESS = 3


def run(
    study: Study,
    features: Path,
    records: Records,
    batches: Sequence[Batch],
    workers: int,
    finished: Callable[[int], None],
) -> None:
    """Run all batches; `finished` hears how many cells each completed batch held."""
    # Children read these when they load their BLAS, before any code of ours runs in them.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    remaining = list(batches)
    deaths = 0
    while remaining:
        before = len(remaining)
        try:
            remaining = _drain(study, features, records, remaining, workers, finished)
        except BrokenProcessPool:
            remaining = [b for b in remaining if not all(records.path(c).exists() for c in b.cells)]
            deaths = 0 if len(remaining) < before else deaths + 1
            if deaths >= DEATHS_WITHOUT_PROGRESS:
                cell = remaining[0].cells[0]
                raise KshotError(
                    f"workers keep dying, last near {cell.dataset}, {cell.backbone}, {cell.shots} shots; "
                    "probably out of memory. Finished cells are kept: run again with --workers 1."
                ) from None


def _drain(
    study: Study,
    features: Path,
    records: Records,
    batches: list[Batch],
    workers: int,
    finished: Callable[[int], None],
) -> list[Batch]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(batches)), context, _start_worker)
    try:
        waiting: dict[Future, Batch] = {
            pool.submit(run_batch, study, features, records, batch): batch for batch in batches
        }
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                future.result()
                batch = waiting.pop(future)
                batches.remove(batch)
                finished(len(batch.cells))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return batches


def _start_worker() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent,), daemon=True).start()


def _die_with(parent) -> None:
    """Without this a killed driver would leave workers computing for nobody."""
    parent.join()
    os._exit(1)
