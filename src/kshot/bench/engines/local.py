"""This process, or several spawned ones on this machine, one BLAS thread each.

A worker process that dies leaves its cells missing, never failed: the pool is rebuilt and the cells that still have
no file are handed out again. A driver that dies takes its workers with it.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from threadpoolctl import threadpool_limits

from kshot.bench.engines import Workload
from kshot.bench.work import CellBatch, count_cells
from kshot.errors import KshotError

DEATHS_WITHOUT_PROGRESS = 3


@dataclass(frozen=True)
class LocalEngine:
    """`workers` processes; a single worker is this process."""

    workers: int

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None:
        remaining = list(workload.batches)
        if self.workers == 1:
            with threadpool_limits(1):
                for batch in remaining:
                    workload.run(workload.study, workload.features, workload.target, batch)
                    finished(len(batch.cells))
            return
        deaths = 0
        while remaining:
            before = count_cells(remaining)
            try:
                self._drain(workload, remaining, finished)
            except BrokenProcessPool:
                handed_out = count_cells(remaining)
                remaining = workload.unfinished(remaining)
                finished(handed_out - count_cells(remaining))
                deaths = 0 if count_cells(remaining) < before else deaths + 1
                if deaths >= DEATHS_WITHOUT_PROGRESS:
                    cell = remaining[0].cells[0]
                    raise KshotError(
                        f"workers keep dying, last near {cell.dataset}, {cell.backbone}, {cell.shots} shots; "
                        "probably out of memory. Finished cells are kept: run again with --workers 1."
                    ) from None

    def _drain(self, workload: Workload, remaining: list[CellBatch], finished: Callable[[int], None]) -> None:
        """Hand out every batch once; those that complete leave `remaining`."""
        context = multiprocessing.get_context("spawn")
        ending, driver = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(min(self.workers, len(remaining)), context, _start_worker, (ending,))
        waiting: dict[Future, CellBatch] = {}
        try:
            with _interrupts_held_back():
                for batch in remaining:
                    arguments = (workload.study, workload.features, workload.target, batch)
                    waiting[pool.submit(workload.run, *arguments)] = batch
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    future.result()
                    batch = waiting.pop(future)
                    remaining.remove(batch)
                    finished(len(batch.cells))
        finally:
            if waiting:
                driver.close()
            # Not waiting would let the pool's thread and the end of Python close the same pipe: a traceback.
            pool.shutdown(wait=True, cancel_futures=True)
            driver.close()
            ending.close()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started meanwhile never hear Ctrl-C, which a terminal sends to all: their driver ends them, without
    a traceback from each."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(ending: Connection) -> None:
    threadpool_limits(1)
    threading.Thread(target=_end_with_driver, args=(ending,), daemon=True).start()


def _end_with_driver(ending: Connection) -> None:
    """End at once when the driver has closed its side, on purpose or because it was killed; cells are written whole
    or not at all. Without this, workers would go on computing for nobody."""
    ending.poll(None)
    os._exit(1)
