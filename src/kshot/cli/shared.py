"""Options and helpers that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.errors import StudyError

if TYPE_CHECKING:
    from rich.console import Console

    from kshot.bench.records.folder import Records
    from kshot.bench.study import Study

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
DEFAULT_FEATURES = Path("features")


def console(stderr: bool = False) -> "Console":
    """Colours and width of the terminal; plain text and lines as long as they are elsewhere."""
    from rich.console import Console

    from kshot.report.renderings import UNBOUNDED

    shown = Console(highlight=False, stderr=stderr)
    return shown if shown.is_terminal else Console(highlight=False, stderr=stderr, width=UNBOUNDED)


def named_run(study: Path, method: list[str] | None, records: Path | None) -> "tuple[Study, Records]":
    """The study of a command line, with outsiders' methods added, and the folder of its records."""
    from kshot.bench.records.folder import Records
    from kshot.bench.study import load_study

    own_modules()
    loaded = load_study(study).with_methods(method or [])
    return loaded, Records(records_folder(records, loaded.name))


def records_folder(given: Path | None, study_name: str) -> Path:
    return given if given is not None else Path("records") / study_name


def existing_records(where: Path) -> Path:
    """A records folder, or the default folder of a study."""
    from kshot.bench.study import load_study, names_study

    if names_study(where):
        return records_folder(None, load_study(where).name)
    if not where.is_dir():
        raise StudyError(f"there is no records folder at {where}. Run `kshot run STUDY` first.")
    return where


def own_modules() -> None:
    """Let `--method module:Class` find modules of the current folder, as `python -m` would."""
    import os
    import sys

    here = os.getcwd()
    if here not in sys.path:
        # Last: a file of that folder must not take the place of a library.
        sys.path.append(here)


def human_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def human_bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit in ("B", "kB") else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
