"""Several processes on this machine, one BLAS thread each.

Workers are spawned. Heads and features that only this process has are inherited by forked ones, a new one for each
cell, so that nothing passes from cell to cell. A worker process that dies leaves its cells missing, never failed: the
pool is rebuilt and the cells that still have no file are handed out again. A driver that dies takes its workers with
it.
"""

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess

from threadpoolctl import threadpool_limits

from kshot.bench.engines import Workload, workers_environment
from kshot.bench.work import CellBatch
from kshot.errors import KshotError, one_line


@dataclass(frozen=True)
class LocalEngine:
    """`workers` processes."""

    workers: int

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None:
        drain = self._drain_forked if workload.in_memory else self._drain

        def run_once(remaining: list[CellBatch]) -> None:
            with suppress(BrokenProcessPool):
                drain(workload, remaining, finished)

        workload.until_done(run_once, finished, _workers_die)

    def _drain(self, workload: Workload, remaining: list[CellBatch], finished: Callable[[int], None]) -> None:
        """Hand out every batch once; those that complete leave `remaining`."""
        context = multiprocessing.get_context("spawn")
        ending, driver = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(min(self.workers, len(remaining)), context, _start_worker, (ending,))
        waiting: dict[Future, CellBatch] = {}
        try:
            with workers_environment(), _interrupts_held_back():
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

    def _drain_forked(self, workload: Workload, remaining: list[CellBatch], finished: Callable[[int], None]) -> None:
        """Hand out every cell to a forked process of its own; raise BrokenProcessPool if one dies."""
        single = [replace(batch, cells=(cell,)) for batch in remaining for cell in batch.cells]
        # What is loaded for a stratum serves all its cells.
        remaining[:] = sorted(single, key=lambda batch: (batch.cells[0].dataset, batch.cells[0].backbone))
        context = multiprocessing.get_context("fork")
        ending, driver = context.Pipe(duplex=False)
        waiting, running = list(remaining), {}
        try:
            # Inherited, too: OpenMP's threads do not survive a fork, and one needs none.
            with threadpool_limits(1):
                while waiting or running:
                    while waiting and len(running) < self.workers:
                        batch = waiting.pop(0)
                        workload.prepare(workload.study, workload.features, batch)
                        receiver, sender = context.Pipe(duplex=False)
                        process = context.Process(target=_run_forked, args=(workload, batch, ending, driver, sender))
                        with _interrupts_held_back(), warnings.catch_warnings():
                            # Python warns of other threads, whose locks a child may find taken; ours use none of them.
                            warnings.simplefilter("ignore", DeprecationWarning)
                            process.start()
                        sender.close()
                        running[process.sentinel] = process, receiver, batch
                    for sentinel in wait_for(list(running)):
                        process, receiver, batch = running.pop(sentinel)
                        _finish(process, receiver)
                        remaining.remove(batch)
                        finished(len(batch.cells))
        finally:
            for process, receiver, _ in running.values():
                process.kill()
                process.join()
                receiver.close()
            driver.close()
            ending.close()


def _workers_die(remaining: list[CellBatch]) -> str:
    cell = remaining[0].cells[0]
    return (
        f"workers keep dying, last near {cell.dataset}, {cell.backbone}, {cell.shots} shots; probably out of memory. "
        "Finished cells are kept: run again with --workers 1."
    )


def _run_forked(
    workload: Workload, batch: CellBatch, ending: Connection, driver: Connection, sender: Connection
) -> None:
    driver.close()
    threading.Thread(target=_end_with_driver, args=(ending,), daemon=True).start()
    try:
        workload.run(workload.study, workload.features, workload.target, batch)
        sender.send_bytes(b" ")
    except Exception as error:
        sender.send_bytes(str(error).encode() if isinstance(error, KshotError) else one_line(error).encode())


def _finish(process: BaseProcess, receiver: Connection) -> None:
    """Raise the process's error; a process that sent nothing has died."""
    process.join()
    with receiver:
        try:
            message = receiver.recv_bytes().decode() if receiver.poll() else ""
        except EOFError:
            message = ""
    if not message:
        raise BrokenProcessPool(f"a worker ended with {process.exitcode}")
    if message != " ":
        raise KshotError(message)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Block Ctrl-C in processes started meanwhile; their driver ends them, without a traceback from each."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(ending: Connection) -> None:
    threadpool_limits(1)
    threading.Thread(target=_end_with_driver, args=(ending,), daemon=True).start()


def _end_with_driver(ending: Connection) -> None:
    """End this worker as soon as the driver closes its side or is killed; cells are written whole or not at all."""
    ending.poll(None)
    os._exit(1)
