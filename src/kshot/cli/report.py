"""`kshot report`: tables, figures and a page from records."""

import textwrap
from typing import Annotated, Literal

import typer
from threadpoolctl import threadpool_limits
from typer import Argument, Option

from kshot.cli import shared
from kshot.cli.run import print_verdict
from kshot.cli.shared import FEATURES, RECORDS, records_and_study
from kshot.results import load_records


def report(
    study: Annotated[str | None, Argument(help="A study; needed where several share the records.")] = None,
    output: shared.ReportFolderOption = None,
    format: Annotated[
        Literal["rich", "latex", "md", "csv"], Option(help="Format of the tables that are printed.")
    ] = "rich",
    table: Annotated[list[str] | None, Option(help="Print only this table, write no files. Repeatable.")] = None,
    dataset: shared.OnlyDatasets = None,
    backbone: shared.OnlyBackbones = None,
    tier: shared.OnlyTiers = None,
    shots: shared.ShotsOption = None,
    profile: Annotated[list[str] | None, Option(help="Only this profile of shots. Repeatable.")] = None,
    method: Annotated[list[str] | None, Option(help="Only this method. Repeatable.")] = None,
    metric: Annotated[
        str, Option(help="accuracy, nll, brier, ece, class_mean, worst_decile, aurc … or MODULE:NAME.")
    ] = "accuracy",
    beside: Annotated[
        str | None, Option(help="A study of the same cells in another precision, or without views.")
    ] = None,
    every: Annotated[bool, Option("--all", help="Print all tables, not only the leaderboard.")] = False,
    corrected: Annotated[bool, Option("--corrected", help="Add simultaneous intervals (Bonferroni).")] = False,
    headroom: Annotated[bool, Option("--headroom", help="Compute the headroom from the features (slow).")] = False,
    records: shared.RecordsOption = RECORDS,
    features: shared.FeaturesOption = FEATURES,
) -> None:
    """Print leaderboard and verdict; write all tables, the figures and a page that opens from disk."""
    # The matrices are small: on a busy machine waiting for threads costs more than they save.
    threadpool_limits(1)
    folder, name = records_and_study(study, records)
    other = None if beside is None else load_records(*records_and_study(beside, folder))
    results = load_records(folder, name, features=features, corrected=corrected, headroom=headroom).beside(other)
    filters = {"dataset": dataset, "backbone": backbone, "tier": tier, "profile": profile, "method": method}
    results = results.where(shots=shots or (), **{name: only or () for name, only in filters.items()}).by(metric)
    pretty = format == "rich"
    out = shared.console(stderr=not pretty)
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
            render = {"latex": one.latex, "md": one.markdown, "csv": one.csv}
            typer.echo(render[format](), nl=False)
    if table:
        return
    if pretty and not every:
        print_verdict(results)
    written = results.report(output)
    for name, reason in written.missing.items():
        out.print(textwrap.fill(f"no figure {name}: {reason}", 78, subsequent_indent="  "), markup=False)
    out.print(f"wrote {written.page}\n  and {len(written.files) - 1} files beside it", markup=False)
