"""`kshot report`: tables, figures and a page from records."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, console, existing_records

if TYPE_CHECKING:
    from rich.console import Console

    from kshot.report.table import Table
    from kshot.results import Results


class TableFormat(StrEnum):
    """How tables are printed."""

    rich = "rich"
    latex = "latex"
    md = "md"
    csv = "csv"


def report(
    records: Annotated[Path, typer.Argument(help="Records folder, or the study that filled it.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; RECORDS/report unless given.")
    ] = None,
    format: Annotated[TableFormat, typer.Option(help="How the tables are printed here.")] = TableFormat.rich,
    table: Annotated[
        list[str] | None, typer.Option(help="Print this table only and write nothing. Repeatable.")
    ] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset. Repeatable.")] = None,
    backbone: Annotated[list[str] | None, typer.Option(help="Only this backbone. Repeatable.")] = None,
    tier: Annotated[list[str] | None, typer.Option(help="Only this prompt tier. Repeatable.")] = None,
    shots: Annotated[list[int] | None, typer.Option(help="Only this K. Repeatable.")] = None,
    profile: Annotated[list[str] | None, typer.Option(help="Only this profile of shots. Repeatable.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Only this method. Repeatable.")] = None,
    metric: Annotated[
        str, typer.Option(help="What the leaderboards count: nll, brier, ece, class_mean, worst_decile, aurc …")
    ] = "accuracy",
    precision: Annotated[
        Path | None, typer.Option(help="Records of the same cells in another precision, for the precision arm.")
    ] = None,
    base: Annotated[
        Path | None, typer.Option(help="Records of the same cells without augmented views, for the augmentation arm.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print every table, not the leaderboard alone.")] = False,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="Add intervals that hold simultaneously (Bonferroni).")
    ] = False,
    headroom: Annotated[
        bool, typer.Option("--headroom", help="Compute each stratum's headroom from the features; takes a while.")
    ] = False,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Print leaderboard and verdict; write all tables, the figures and a page that opens from disk."""
    from threadpoolctl import threadpool_limits

    from kshot.results import load_records

    # The matrices are small: on a busy machine waiting for threads costs more than they save.
    threadpool_limits(1)
    results = (
        load_records(
            existing_records(records),
            features=features,
            precision=None if precision is None else existing_records(precision),
            base=None if base is None else existing_records(base),
            corrected=corrected,
            headroom=headroom,
        )
        .where(
            dataset=dataset or (),
            backbone=backbone or (),
            tier=tier or (),
            shots=shots or (),
            profile=profile or (),
            method=method or (),
        )
        .by(metric)
    )
    out = console(stderr=format is not TableFormat.rich)
    if results.unfinished:
        out.print(results.unfinished, markup=False)
    if table:
        print_tables((results.table(key) for key in table), format)
        return
    brief = format is TableFormat.rich and not every
    print_tables([results.leaderboard()] if brief else results.tables(), format)
    if brief:
        print_verdict(results, out)
    written = results.report(output)
    for name, reason in written.missing.items():
        out.print(f"figure {name} is missing: {reason}", markup=False)
    out.print(f"wrote {written.page} and {len(written.files) - 1} other files in {written.page.parent}", markup=False)


def print_verdict(found: "Results", out: "Console") -> None:
    for sentence in found.verdict():
        out.print(f"• {sentence}", markup=False)
    out.print()


def print_tables(tables: "Iterable[Table]", format: TableFormat) -> None:
    out = console()
    for table in tables:
        if format is TableFormat.rich:
            out.print(table)
        else:
            text = {TableFormat.latex: table.latex, TableFormat.md: table.markdown, TableFormat.csv: table.csv}
            typer.echo(text[format](), nl=False)
