"""`kshot report`: tables, figures and a page from records."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kshot.cli import shared
from kshot.cli.run import print_verdict
from kshot.cli.shared import FEATURES, existing_records


class TableFormat(StrEnum):
    """How tables are printed."""

    rich = "rich"
    latex = "latex"
    md = "md"
    csv = "csv"


def report(
    records: shared.RecordsArgument,
    output: shared.ReportFolderOption = None,
    format: Annotated[TableFormat, typer.Option(help="How the tables are printed here.")] = TableFormat.rich,
    table: Annotated[
        list[str] | None, typer.Option(help="Print this table only and write nothing. Repeatable.")
    ] = None,
    dataset: shared.OnlyDatasets = None,
    backbone: shared.OnlyBackbones = None,
    tier: shared.OnlyTiers = None,
    shots: shared.ShotsOption = None,
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
    features: shared.FeaturesOption = FEATURES,
) -> None:
    """Print leaderboard and verdict; write all tables, the figures and a page that opens from disk."""
    from threadpoolctl import threadpool_limits

    from kshot.results import load_records

    # The matrices are small: on a busy machine waiting for threads costs more than they save.
    threadpool_limits(1)
    results = load_records(
        existing_records(records),
        features=features,
        precision=precision and existing_records(precision),
        base=base and existing_records(base),
        corrected=corrected,
        headroom=headroom,
    )
    filters = {"dataset": dataset, "backbone": backbone, "tier": tier, "profile": profile, "method": method}
    results = results.where(shots=shots or (), **{name: only or () for name, only in filters.items()}).by(metric)
    out, pretty = shared.console(stderr=format is not TableFormat.rich), format is TableFormat.rich
    if results.unfinished:
        out.print(results.unfinished, markup=False)
    if table:
        shown = map(results.table, table)
    else:
        shown = [results.leaderboard()] if pretty and not every else results.tables()
    for one in shown:
        if pretty:
            out.print(one)
        else:
            render = {TableFormat.latex: one.latex, TableFormat.md: one.markdown, TableFormat.csv: one.csv}
            typer.echo(render[format](), nl=False)
    if table:
        return
    if pretty and not every:
        print_verdict(results)
    written = results.report(output)
    for name, reason in written.missing.items():
        out.print(f"figure {name} is missing: {reason}", markup=False)
    out.print(f"wrote {written.page} and {len(written.files) - 1} other files in {written.page.parent}", markup=False)
