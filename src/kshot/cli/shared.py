"""Options and helpers that several commands share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from kshot.errors import StudyError

if TYPE_CHECKING:
    from rich.console import Console


class GroupedCommands(TyperGroup):
    """A help page with its commands in groups and no sentence cut short."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None)
            group = panel if isinstance(panel, str) else "Commands"
            groups.setdefault(group, []).append((name.ljust(width), command.get_short_help_str(WHOLE)))
        for group, lines in groups.items():
            with formatter.section(group):
                formatter.write_dl(lines)


WHOLE = 1000
# What typer imports for its boxes takes longer than everything else on the way to a help page.
PLAIN_PAGES: Any = {"cls": GroupedCommands, "rich_markup_mode": None}

FeaturesOption = Annotated[Path, typer.Option("--features", envvar="KSHOT_FEATURES", help="Folder of stored features.")]
StudyArgument = Annotated[
    Path, typer.Argument(help="A study of the package by name, such as embedded, or a study file.")
]
RecordsOption = Annotated[
    Path | None, typer.Option("--records", help="Where records go; records/STUDYNAME unless given.")
]
MethodOption = Annotated[
    list[str] | None, typer.Option("--method", help="Add a method of your own, as package.module:Class. Repeatable.")
]
WorkersOption = Annotated[int, typer.Option("--workers", min=1, help="Worker processes, one BLAS thread each.")]
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
    from kshot.bench.records import records_folder
    from kshot.bench.study import load_study, names_study

    if names_study(where):
        return records_folder(None, load_study(where).name)
    if not where.is_dir():
        raise StudyError(f"there is no records folder at {where}. Run `kshot run STUDY` first.")
    return where
