"""Ways to run the missing cells of a study, behind one small interface.

An engine only hands out batches. Workers write each cell themselves, so the records folder stays the only truth,
and a cell that two workers happen to claim is written twice with the same content.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from kshot.bench.cell import ONE_THREAD, environment
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.bench.work import CellBatch, count_cells
from kshot.data.memory import MemoryStore
from kshot.data.store import Store
from kshot.errors import KshotError
from kshot.methods import registry

TURNS_WITHOUT_PROGRESS = 3
# No module of the current folder stands in for one of Python's own, as it does in processes that `python -c` starts.
WORKER_ENVIRONMENT = ONE_THREAD | {"PYTHONSAFEPATH": "1"}


@contextmanager
def workers_environment() -> Iterator[None]:
    """Environment variables and main module for the worker processes that are started meanwhile."""
    main = sys.modules["__main__"]
    # A spawned process runs the main module again, and a script without a guard would start its run in every worker.
    # Workers need nothing from it; an empty module in its place leaves nothing to run.
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with environment(WORKER_ENVIRONMENT):
            yield
    finally:
        sys.modules["__main__"] = main


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

    def until_done(
        self,
        run_once: Callable[[list[CellBatch]], object],
        finished: Callable[[int], None],
        why: Callable[[list[CellBatch]], str],
    ) -> None:
        """Call `run_once`, which removes the batches that it completes, until none is left.

        A turn may lose workers; after three turns in a row without a new cell an error says `why`.
        """
        remaining, lost = list(self.batches), 0
        while remaining:
            before = count_cells(remaining)
            run_once(remaining)
            if not remaining:
                return
            unreported = count_cells(remaining)
            remaining = self.unfinished(remaining)
            finished(unreported - count_cells(remaining))
            lost = 0 if count_cells(remaining) < before else lost + 1
            if lost >= TURNS_WITHOUT_PROGRESS:
                raise KshotError(why(remaining))

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
