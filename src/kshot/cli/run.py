"""`kshot run`: compute what a study still lacks."""

import os
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
    own_modules,
    records_folder,
)

if TYPE_CHECKING:
    from kshot.bench.records import Records


def run(
    study: StudyArgument,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: Annotated[
        int, typer.Option(min=1, help="Worker processes, one BLAS thread each.")
    ] = os.cpu_count() or 1,
    method: MethodOption = None,
    retry: Annotated[bool, typer.Option("--retry", help="Compute cells with failed methods again.")] = False,
) -> None:
    """Compute the missing cells of a study; finished cells are never computed again."""
    import time

    from kshot.bench.engines import local
    from kshot.bench.prepare import prepare
    from kshot.bench.records import Records
    from kshot.bench.study import load_study
    from kshot.features.store import Store
    from kshot.files import remove_torn

    own_modules()
    loaded = load_study(study).with_methods(method or [])
    target = Records(records_folder(records, loaded.name))
    work = prepare(loaded, Store(features), target)
    target.claim(loaded, work.dropped, work.features)
    remove_torn(target.folder)
    if retry and _forget_failed(target):
        work = prepare(loaded, Store(features), target)
    out = console()
    out.print(
        f"{loaded.name}: {len(work.cells)} cells, {len(work.dropped)} dropped (thin pool), "
        f"{len(work.done)} done, {len(work.missing)} to compute with {workers} worker(s)."
    )
    start = time.perf_counter()
    with CellProgress(len(work.missing)) as progress:
        local.run(loaded, features, target, work.batches(), workers, progress.advance)
    out.print(f"finished in {human_seconds(time.perf_counter() - start)}; records in {target.folder}")
    out.print(f"next: kshot report {target.folder}")


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


def _forget_failed(records: "Records") -> int:
    """Remove the files of cells with a failed method, so that they count as missing."""
    from kshot.bench.records import query
    from kshot.bench.study import Cell

    columns = "dataset, backbone, tier, shots, seed"
    failed = query(
        records.folder, f"select distinct {columns} from records where status = 'failed'"
    ).fetchall()
    for row in failed:
        records.path(Cell(*row)).unlink()
    return len(failed)
