"""Ways to run the missing cells of a study, behind one small interface.

An engine only hands out batches. Workers write each cell themselves, so the records folder stays the only truth,
and a cell that two workers happen to claim is written twice with the same content.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from kshot.bench.prepare import Batch
from kshot.bench.records import Records
from kshot.bench.study import Study

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@dataclass(frozen=True)
class Job:
    """What every engine is given; features and records are paths that all workers can see."""

    study: Study
    features: Path
    records: Records
    batches: Sequence[Batch]

    def unfinished(self, batches: Sequence[Batch]) -> list[Batch]:
        """What lost workers leave behind: the batches without the cells that were recorded."""
        wanted = {cell: batch.specs for batch in batches for cell in batch.cells}
        lacking = self.records.lacking(self.study, wanted)
        trimmed = (replace(b, cells=tuple(cell for cell in b.cells if cell in lacking)) for b in batches)
        return [batch for batch in trimmed if batch.cells]


@runtime_checkable
class Engine(Protocol):
    """Runs all batches of a job; `finished` hears how many cells each completed batch held."""

    def __call__(self, job: Job, finished: Callable[[int], None]) -> None: ...


def one_thread_per_worker() -> None:
    """Children read these variables when they load their BLAS, before any code of ours runs in them."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
