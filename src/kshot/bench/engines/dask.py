"""dask.distributed: an existing cluster by address, or one started here.

Workers are given paths, not features; they must see the feature store and the records folder.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kshot.bench.cell import ONE_THREAD
from kshot.bench.engines import TURNS_WITHOUT_PROGRESS, Workload, workers_environment
from kshot.bench.work import CellBatch
from kshot.errors import KshotError, missing_extra

if TYPE_CHECKING:
    from distributed import Client

SECONDS_BETWEEN_LOOKS = 30
LOOPBACK = "127.0.0.1:0"
CONFIG = {
    **{f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")},
    # Replaces dask's own, whose MALLOC_TRIM_THRESHOLD_ gives every temporary array back to the system at once and
    # makes training half as fast. The log of a worker would only tell, in tracebacks, that its driver was killed.
    "distributed.nanny.pre-spawn-environ": ONE_THREAD | {"DASK_LOGGING__DISTRIBUTED": "critical"},
    # dask waits 15 seconds, and a busy machine takes longer to replace a lost worker.
    "distributed.deploy.lost-worker-timeout": "1 hour",
}


@dataclass(frozen=True)
class DaskEngine:
    """The scheduler at `address`, or a local cluster of `workers` processes without one."""

    workers: int
    address: str | None = None

    @workers_environment()
    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None:
        if workload.in_memory:
            raise KshotError(
                f"{' and '.join(workload.in_memory)}: in the memory of this session only, which workers of dask do not "
                "share. Write the class into a file that they can import, such as my_head.py, and store features with "
                "features.save(folder); or leave engine= out."
            )

        def run_once(remaining: list[CellBatch]) -> None:
            with self._client() as client:
                self._drain(client, workload, remaining, finished)

        workload.until_done(run_once, finished, _workers_lost)

    def _drain(
        self, client: "Client", workload: Workload, remaining: list[CellBatch], finished: Callable[[int], None]
    ) -> None:
        """Hand out every batch once; those whose workers were lost stay in `remaining`."""
        from distributed import KilledWorker

        waiting: dict[Any, CellBatch] = {
            client.submit(_one_thread_batch, workload, batch, pure=False, priority=-number): batch
            for number, batch in enumerate(remaining)
        }
        for future in self._completed(client, set(waiting)):
            batch = waiting.pop(future)
            # The result is not fetched: if its worker was lost meanwhile, dask would compute it again.
            if future.status == "finished":
                remaining.remove(batch)
                finished(len(batch.cells))
            elif future.status == "error" and not isinstance(future.exception(), KilledWorker):
                future.result()

    def _completed(self, client: "Client", futures: set[Any]) -> Iterator[Any]:
        """Yield futures as they end; stop early if our own cluster has no workers left."""
        from distributed import as_completed

        no_workers = False
        while futures:
            try:
                for future in as_completed(list(futures), timeout=SECONDS_BETWEEN_LOOKS):
                    futures.remove(future)
                    yield future
            except TimeoutError:
                before, no_workers = no_workers, self.address is None and not client.nthreads()
                if before and no_workers:
                    return

    @contextmanager
    def _client(self) -> Iterator["Client"]:
        try:
            import dask.config
            from distributed import Client, LocalCluster, Security

            security = Security.temporary() if self.address is None else None
        except ImportError as error:
            raise missing_extra("distributed", "dask") from error
        if self.address is not None:
            try:
                client = Client(self.address, timeout="20s")
            except (OSError, ValueError) as error:
                raise KshotError(f"no dask scheduler answers at {self.address} ({error}).") from error
            with client:
                yield client
            return
        with dask.config.set(CONFIG), ExitStack() as opened:
            try:
                # A scheduler or worker runs any code that it is sent, so only this process gets a key.
                cluster = opened.enter_context(
                    LocalCluster(
                        n_workers=self.workers,
                        threads_per_worker=1,
                        dashboard_address=LOOPBACK,
                        worker_dashboard_address=LOOPBACK,
                        silence_logs=logging.CRITICAL,
                        protocol="tls://",
                        security=security,
                    )
                )
                client = opened.enter_context(Client(cluster))
            except (OSError, RuntimeError) as error:
                raise KshotError(
                    f"the dask cluster did not start ({error}). Run again, or with --engine local."
                ) from error
            yield client


def _workers_lost(remaining: list[CellBatch]) -> str:
    return (
        f"the cluster lost {len(remaining)} batches {TURNS_WITHOUT_PROGRESS} times in a row; finished cells are kept. "
        "Look at the workers' memory and logs, then run the same command again."
    )


def _one_thread_batch(workload: Workload, batch: CellBatch) -> int:
    """Workers of an existing cluster were not started by us, so their BLAS is limited here."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return workload.run(workload.study, workload.features, workload.target, batch)
