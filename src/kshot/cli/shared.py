"""Options that several commands share, and helpers to read and print them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from kshot.errors import StudyError

if TYPE_CHECKING:
    from rich.console import Console

FeaturesOption = Annotated[Path, Option("--features", envvar="KSHOT_FEATURES", help="Folder of stored features.")]
StudyArgument = Annotated[Path, Argument(help="A study file, or a name of `kshot ls studies`.")]
RecordsOption = Annotated[Path, Option("--records", help="Folder of records, one for all studies.")]
ReportFolderOption = Annotated[
    Path | None, Option("--output", "-o", help="Folder to write to; RECORDS/reports/STUDY unless given.")
]
MethodOption = Annotated[
    list[str] | None, Option("--method", help="Add a method of your own, as package.module:Class. Repeatable.")
]
OnOption = Annotated[
    list[str] | None, Option("--on", help="DATASET/BACKBONE/TIER: run the study on these features instead. Repeatable.")
]
StudyShotsOption = Annotated[
    list[int] | None, Option("--shots", min=1, help="K instead of the study's own. Repeatable.")
]
LeastLeftOption = Annotated[
    int | None, Option("--least-left", min=0, help="Pool pictures a class must keep, for methods that look at them.")
]
WorkersOption = Annotated[int, Option("--workers", min=1, help="Worker processes, one BLAS thread each.")]
BackendOption = Annotated[str, Option("--backend", help="loky, or dask:ADDRESS of a running cluster.")]
ShardOption = Annotated[str, Option("--shard", help="Part of the study as i/n: the i-th of n parts, from 0.")]
OnlyDatasets = Annotated[list[str] | None, Option("--dataset", help="Only this dataset. Repeatable.")]
OnlyBackbones = Annotated[list[str] | None, Option("--backbone", help="Only this backbone. Repeatable.")]
OnlyTiers = Annotated[list[str] | None, Option("--tier", help="Only this prompt tier. Repeatable.")]
ShotsOption = Annotated[list[int] | None, Option("--shots", min=1, help="Only this K. Repeatable.")]
WeightsOption = Annotated[Path | None, Option("--weights", help="Local checkpoint of the encoder.")]
DeviceOption = Annotated[str, Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
FEATURES, RECORDS = Path("features"), Path("records")
CORES = os.cpu_count() or 1


class GroupedCommands(TyperGroup):
    """Help page that lists commands in groups and prints their whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None)
            group = panel if isinstance(panel, str) else "Commands"
            groups.setdefault(group, []).append((name.ljust(width), command.get_short_help_str(limit=1000)))
        for group, lines in groups.items():
            with formatter.section(group):
                formatter.write_dl(lines)


def command_group(cls: type[GroupedCommands] = GroupedCommands, **options: Any) -> typer.Typer:
    """Return an empty group; typer's boxed help would import rich, which takes longer than all the rest."""
    return typer.Typer(cls=cls, rich_markup_mode=None, no_args_is_help=True, **options)


def console(stderr: bool = False) -> "Console":
    """Return a console with the terminal's colours and width; without a terminal, plain text in lines of any length."""
    from rich.console import Console

    from kshot.report.renderings import UNBOUNDED

    shown = Console(highlight=False, stderr=stderr)
    return shown if shown.is_terminal else Console(highlight=False, stderr=stderr, width=UNBOUNDED)


def records_and_study(given: str | Path | None, records: Path) -> tuple[Path, str]:
    """The folder of records and the name of a study, given its name, its file, or a folder of records."""
    from kshot.bench.records import Records
    from kshot.bench.study import load_study, names_study

    if given is not None and Path(given).is_dir():
        records, given = Path(given), None
    if not records.is_dir():
        raise StudyError(f"there is no folder of records at {records}. Run `kshot run STUDY` first.")
    if given is not None:
        return records, load_study(Path(given)).name if names_study(given) else str(given)
    names = Records(records).names()
    if len(names) > 1:
        raise StudyError(f"{records} holds records of several studies: {', '.join(names)}. Name one of them.")
    return records, names[0] if names else ""
