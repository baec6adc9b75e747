"""Ways to run the missing cells of a study, behind one small interface.

An engine only hands out batches. Workers write each cell themselves, so the records folder stays the only truth,
and a cell that two workers happen to claim is written twice with the same content.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from threadpoolctl import threadpool_limits

from kshot.bench.study import Cell, MethodSpec, Study
from kshot.bench.work import CellBatch
from kshot.data.memory import MemoryStore
from kshot.data.store import Store
from kshot.methods import registry

# A BLAS reads these when it is loaded, before any code of ours runs in a process.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)
# No module of the current folder stands in for one of Python's own, as it does in processes that `python -c` starts.
WORKER_ENVIRONMENT = ONE_THREAD | {"PYTHONSAFEPATH": "1"}


@dataclass(frozen=True)
class Workload:
    """What every engine is given; all workers must be able to read and write the paths of features and target.

    Workers call `run` with study, features, target and one batch; `missing` finds what the target still lacks.
    `prepare` loads what a batch needs, for processes that inherit it.
    """

    study: Study
    features: Path | Store
    target: Any
    batches: Sequence[CellBatch]
    run: Callable[..., int]
    missing: Callable[..., Mapping[Cell, Sequence[MethodSpec]]]
    prepare: Callable[..., object] = lambda study, features, batch: None

    @property
    def in_memory(self) -> list[str]:
        """Heads and features that only this process has, in words."""
        heads = [name for name, spec in self.study.methods().items() if registry.is_held(spec.use)]
        return [f"the head {name}" for name in heads] + (
            [f"the features {name}" for name in self.features.held] if isinstance(self.features, MemoryStore) else []
        )

    def unfinished(self, batches: Sequence[CellBatch]) -> list[CellBatch]:
        """The batches that lost workers left, without the cells that were recorded."""
        wanted = {cell: batch.specs for batch in batches for cell in batch.cells}
        missing = self.missing(self.target, self.study, wanted)
        trimmed = (replace(b, cells=tuple(cell for cell in b.cells if cell in missing)) for b in batches)
        return [batch for batch in trimmed if batch.cells]


@runtime_checkable
class Engine(Protocol):
    """Runs all batches of a workload; `finished` is called with the number of cells of each completed batch."""

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None: ...


@dataclass(frozen=True)
class ThisProcess:
    """One batch after another, here, with one BLAS thread."""

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None:
        with threadpool_limits(1):
            for batch in workload.batches:
                workload.run(workload.study, workload.features, workload.target, batch)
                finished(len(batch.cells))
