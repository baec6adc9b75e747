"""Options and helpers that several commands share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.errors import StudyError

if TYPE_CHECKING:
    from rich.console import Console

FeaturesOption = Annotated[
    Path, typer.Option("--features", envvar="KSHOT_FEATURES", help="Folder of stored features.")
]
StudyArgument = Annotated[
    Path, typer.Argument(help="A study of the package by name, such as embedded, or a study file.")
]
RecordsOption = Annotated[
    Path | None, typer.Option("--records", help="Where records go; records/STUDYNAME unless given.")
]
MethodOption = Annotated[
    list[str] | None,
    typer.Option("--method", help="Add a method of your own, as package.module:Class. Repeatable."),
]
WorkersOption = Annotated[
    int, typer.Option("--workers", min=1, help="Worker processes, one BLAS thread each.")
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="local, dask, or dask:ADDRESS of a cluster that runs already.")
]
DEFAULT_FEATURES = Path("features")
DEFAULT_WORKERS = os.cpu_count() or 1


def console(stderr: bool = False) -> "Console":
    """Colours and width of the terminal; plain text and lines as long as they are elsewhere."""
    from rich.console import Console

    from kshot.report.renderings import UNBOUNDED

    shown = Console(highlight=False, stderr=stderr)
    return shown if shown.is_terminal else Console(highlight=False, stderr=stderr, width=UNBOUNDED)


def existing_records(where: Path) -> Path:
    """A records folder, or the default folder of a study."""
    from kshot.bench.records.folder import records_folder
    from kshot.bench.study import load_study, names_study

    if names_study(where):
        return records_folder(None, load_study(where).name)
    if not where.is_dir():
        raise StudyError(f"there is no records folder at {where}. Run `kshot run STUDY` first.")
    return where
