"""Ways to run the missing cells of a study, behind one small interface.

An engine only hands out batches. Workers write each cell themselves, so the records folder stays the only truth,
and a cell that two workers happen to claim is written twice with the same content.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from kshot.bench.work import Workload
from kshot.errors import KshotError, unknown


@runtime_checkable
class Engine(Protocol):
    """Runs all batches of a workload; `finished` hears how many cells each completed batch held."""

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None: ...


def choose_engine(engine: Engine | str, workers: int) -> Engine:
    """`local`, `dask` (a cluster started here) or `dask:ADDRESS`; one that is an engine already stays as it is."""
    if not isinstance(engine, str):
        return engine
    name, _, address = engine.partition(":")
    if engine == "local":
        from kshot.bench.execution.engines.local import LocalEngine

        return LocalEngine(workers)
    if name == "dask":
        from kshot.bench.execution.engines.dask import DaskEngine

        return DaskEngine(workers, address or None)
    raise KshotError(unknown("engine", engine, ("local", "dask"), "For SLURM see `kshot slurm --help`."))
