"""dask.distributed: an existing cluster by address, or one started here.

Workers are given paths, not features; they must see the feature store and the records folder.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kshot.bench.execution.engines import ONE_THREAD, Workload
from kshot.bench.work import CellBatch
from kshot.errors import KshotError, missing_extra

if TYPE_CHECKING:
    from distributed import Client

LOSSES_WITHOUT_PROGRESS = 3
LOOPBACK = "127.0.0.1:0"
NO_PAGES = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
# Replaces dask's own, whose MALLOC_TRIM_THRESHOLD_ gives every temporary array back to the system at once and
# makes training half as fast. What goes wrong in a batch reaches the driver; a worker's own log would only tell in
# tracebacks that its driver was killed.
NANNY_ENVIRONMENT = ONE_THREAD | {"DASK_LOGGING__DISTRIBUTED": "critical"}


@dataclass(frozen=True)
class DaskEngine:
    """The scheduler at `address`, or a local cluster of `workers` processes without one."""

    workers: int
    address: str | None = None

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None:
        remaining = list(workload.batches)
        losses = 0
        with self._client() as client:
            while remaining:
                before = _cells(remaining)
                self._drain(client, workload, remaining, finished)
                handed_out = _cells(remaining)
                remaining = workload.unfinished(remaining)
                finished(handed_out - _cells(remaining))
                losses = 0 if _cells(remaining) < before else losses + 1
                if remaining and losses >= LOSSES_WITHOUT_PROGRESS:
                    raise KshotError(
                        f"the cluster lost {len(remaining)} batches {losses} times in a row; finished cells are kept. "
                        "Look at the workers' memory and logs, then run the same command again."
                    )

    def _drain(
        self,
        client: "Client",
        workload: Workload,
        remaining: list[CellBatch],
        finished: Callable[[int], None],
    ) -> None:
        """Hand out every batch once; those whose workers were lost stay in `remaining`."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker, as_completed

        waiting: dict[Any, CellBatch] = {
            client.submit(_one_thread_batch, workload, batch, pure=False, priority=-number): batch
            for number, batch in enumerate(remaining)
        }
        for future in as_completed(waiting):
            try:
                future.result()
            except (KilledWorker, CancelledError):
                continue
            batch = waiting[future]
            remaining.remove(batch)
            finished(len(batch.cells))

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
        with (
            dask.config.set({"distributed.nanny.pre-spawn-environ": NANNY_ENVIRONMENT, **NO_PAGES}),
            ExitStack() as opened,
        ):
            try:
                # Whoever reaches a scheduler or worker may run code in it, so only this process gets a key.
                cluster = opened.enter_context(
                    LocalCluster(
                        n_workers=self.workers,
                        threads_per_worker=1,
                        dashboard_address=LOOPBACK,
                        worker_dashboard_address=LOOPBACK,
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


def _cells(batches: list[CellBatch]) -> int:
    return sum(len(batch.cells) for batch in batches)


def _one_thread_batch(workload: Workload, batch: CellBatch) -> int:
    """Workers of an existing cluster were not started by us, so their BLAS is limited here."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return workload.run(workload.study, workload.features, workload.target, batch)
