"""Ways to run the missing cells of a study, behind one small interface.

An engine only hands out batches. Workers write each cell themselves, so the records folder stays the only truth,
and a cell that two workers happen to claim is written twice with the same content.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from kshot.bench.work import Workload


@runtime_checkable
class Engine(Protocol):
    """Runs all batches of a workload; `finished` hears how many cells each completed batch held."""

    def __call__(self, workload: Workload, finished: Callable[[int], None]) -> None: ...
