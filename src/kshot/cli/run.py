"""`kshot run` and `kshot retry`: compute what a study still lacks."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import (
    DEFAULT_FEATURES,
    FeaturesOption,
    MethodOption,
    RecordsOption,
    StudyArgument,
    console,
    human_seconds,
    named_run,
)

if TYPE_CHECKING:
    from kshot.bench.execution.engines import Engine
    from kshot.bench.execution.run import StudyShard
    from kshot.bench.records.folder import Records
    from kshot.bench.study import Study

WorkersOption = Annotated[int, typer.Option(min=1, help="Worker processes, one BLAS thread each.")]
DEFAULT_WORKERS = os.cpu_count() or 1


def run(
    study: StudyArgument,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
    method: MethodOption = None,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="Scheduler of an existing dask cluster; without it one is started here."),
    ] = None,
    shard: Annotated[str, typer.Option(help="Only part i of n, as i/n counted from 0.")] = "0/1",
) -> None:
    """Compute the missing cells of a study; finished cells are never computed again."""
    loaded, target = named_run(study, method, records)
    compute_and_tell(loaded, features, target, chosen_engine(engine, workers, address), parse_shard(shard))
    console().print(f"next: kshot report {target.folder}", markup=False)


def retry(
    study: StudyArgument,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
    method: MethodOption = None,
) -> None:
    """Compute the cells with a failed method again, after its cause was repaired."""
    from kshot.bench.execution.run import open_run
    from kshot.bench.records.compact import failed_cells, forget

    loaded, target = named_run(study, method, records)
    open_run(loaded, features, target)
    failed = failed_cells(target)
    forget(target, failed)
    console().print(f"{len(failed)} cells had a failed method")
    compute_and_tell(loaded, features, target, chosen_engine("local", workers, None))


def compute_and_tell(
    study: "Study", features: Path, records: "Records", engine: "Engine", shard: "StudyShard | None" = None
) -> None:
    """Run with a progress display; used by every command that computes cells."""
    import time

    from kshot.bench.execution.run import WHOLE, compute, open_run

    part = shard or WHOLE
    work = open_run(study, features, records)
    todo = sum(len(batch.cells) for batch in work.batches(part.index, part.count))
    out = console()
    share = f" in shard {part.index}/{part.count}" if part.count > 1 else ""
    out.print(
        f"{study.name}: {len(work.cells)} cells, {len(work.dropped)} dropped (thin pool), "
        f"{work.done} done, {todo} to compute{share} with {engine!r}.",
        markup=False,
    )
    start = time.perf_counter()
    with CellProgress(todo) as progress:
        compute(work, features, records, engine, part, progress.advance)
    out.print(
        f"finished in {human_seconds(time.perf_counter() - start)}; records in {records.folder}", markup=False
    )


def chosen_engine(name: str, workers: int, address: str | None) -> "Engine":
    from kshot.errors import KshotError, unknown

    if name == "local":
        from kshot.bench.execution.engines.local import LocalEngine

        if address is not None:
            raise KshotError("--address belongs to --engine dask.")
        return LocalEngine(workers)
    if name == "dask":
        from kshot.bench.execution.engines.dask import DaskEngine

        return DaskEngine(workers, address)
    raise KshotError(unknown("engine", name, ("local", "dask"), "For SLURM see `kshot slurm --help`."))


def parse_shard(text: str) -> "StudyShard":
    from kshot.bench.execution.run import StudyShard
    from kshot.errors import KshotError

    index, slash, count = text.partition("/")
    if slash and index.isdigit() and count.isdigit() and int(index) < int(count):
        return StudyShard(int(index), int(count))
    raise KshotError(f"shard '{text}' is not of the form i/n with 0 ≤ i < n, for example 0/4.")


class CellProgress:
    """A bar on a terminal, a plain line now and then elsewhere."""

    def __init__(self, total: int):
        import time

        self.total, self.count = total, 0
        self.console = console()
        self.clock = time.monotonic
        self.last_line = self.started = self.clock()

    def __enter__(self) -> "CellProgress":
        self.bar = None
        if self.console.is_terminal and self.total:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

            self.bar = Progress("cells", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.task = self.bar.add_task("cells", total=self.total)
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, cells: int) -> None:
        self.count += cells
        if self.bar is not None:
            self.bar.advance(self.task, cells)
        elif self.clock() - self.last_line >= 5 or self.count == self.total:
            self.last_line = self.clock()
            self.console.print(
                f"{self.count}/{self.total} cells, {human_seconds(self.last_line - self.started)}"
            )
