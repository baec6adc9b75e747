"""dask.distributed: an existing cluster by address, or one started here.

Workers are given paths, not features; they must see the feature store and the records folder.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kshot.bench.execution.worker import THREAD_VARIABLES
from kshot.bench.work import CellBatch, Workload
from kshot.errors import KshotError, missing_extra

if TYPE_CHECKING:
    from distributed import Client

LOSSES_WITHOUT_PROGRESS = 3
# Replaces dask's own, whose MALLOC_TRIM_THRESHOLD_ gives every temporary array back to the system at once and
# makes training half as fast.
WORKER_ENVIRONMENT = dict.fromkeys(THREAD_VARIABLES, 1)


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
                before = len(remaining)
                self._drain(client, workload, remaining, finished)
                remaining = workload.unfinished(remaining)
                losses = 0 if len(remaining) < before else losses + 1
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
        from distributed import KilledWorker, as_completed

        waiting: dict[Any, CellBatch] = {
            client.submit(_one_thread_batch, workload, batch, pure=False, priority=-number): batch
            for number, batch in enumerate(remaining)
        }
        for future in as_completed(waiting):
            try:
                future.result()
            except KilledWorker:
                continue
            batch = waiting[future]
            remaining.remove(batch)
            finished(len(batch.cells))

    @contextmanager
    def _client(self) -> Iterator["Client"]:
        try:
            import dask.config
            from distributed import Client, LocalCluster
        except ModuleNotFoundError as error:
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
            dask.config.set({"distributed.nanny.pre-spawn-environ": WORKER_ENVIRONMENT}),
            LocalCluster(n_workers=self.workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            yield client


def _one_thread_batch(workload: Workload, batch: CellBatch) -> int:
    """Workers of an existing cluster were not started by us, so their BLAS is limited here."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return workload.run(workload.study, workload.features, workload.target, batch)
