"""`kshot report`: tables, figures and a page from records."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, console, existing_records

if TYPE_CHECKING:
    from kshot.report.context import Context
    from kshot.report.table import Table
    from kshot.stats.panel import Panel


class Format(StrEnum):
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
    format: Annotated[Format, typer.Option(help="How the tables are printed here.")] = Format.rich,
    table: Annotated[str | None, typer.Option(help="Print this table only and write nothing.")] = None,
    precision: Annotated[
        Path | None,
        typer.Option(help="Records of the same cells in another precision, for the precision arm."),
    ] = None,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="Add intervals that hold simultaneously (Bonferroni).")
    ] = False,
    headroom: Annotated[
        bool,
        typer.Option("--headroom", help="Compute each stratum's headroom from the features; takes a while."),
    ] = False,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """Print the tables, and write them with the figures and a page that opens from disk."""
    from dataclasses import replace

    from threadpoolctl import threadpool_limits

    from kshot.bench.records.query import load_table
    from kshot.errors import StudyError, unknown
    from kshot.report.figures import write_figures
    from kshot.report.tables import all_tables
    from kshot.report.write import write_report
    from kshot.stats.panel import panel

    # The matrices are small: on a busy machine waiting for threads costs more than they save.
    threadpool_limits(1)
    folder = existing_records(records)
    found = panel(load_table(folder))
    context = replace(
        report_context(folder, features),
        other_precision=None if precision is None else panel(load_table(existing_records(precision))),
        corrected=corrected,
        headroom=_headroom(folder, found, features) if headroom else {},
    )
    tables = all_tables(found, context)
    out = console(stderr=format is not Format.rich)
    if context.unfinished:
        out.print(context.unfinished, markup=False)
    if table is not None:
        chosen = [t for t in tables if t.key == table]
        if not chosen:
            raise StudyError(unknown("table", table, [t.key for t in tables], "Leave --table out for all."))
        print_tables(chosen, format)
        return
    print_tables(tables, format)
    target = output or folder / "report"
    written = write_report(found, tables, target, context)
    drawn, missing = write_figures(found, context, target / "figures")
    for name, reason in missing.items():
        out.print(f"figure {name} is missing: {reason}", markup=False)
    out.print(f"wrote {written[0]} and {len(written) + len(drawn) - 1} other files in {target}", markup=False)


def report_context(folder: Path, features: Path) -> "Context":
    """What the report may know beside the records: published bands, and features where they are stored."""
    from kshot.bench.records.folder import Records
    from kshot.bench.status import count_done
    from kshot.bench.work import check_stored
    from kshot.diagnose.sketch import sketches
    from kshot.errors import KshotError
    from kshot.features import catalog
    from kshot.features.store import Store
    from kshot.report.context import Context, Gate

    records, store = Records(folder), Store(features)
    done = wanted = 0
    try:
        done, wanted = count_done(folder)
        check_stored(records, store)
        drawn, absent = list(sketches(records.study(), store)), f"no features in {features}"
    except KshotError as error:
        drawn, absent = [], f"the features in {features} cannot be used: {error}"
    return Context(
        gates={entry.name: Gate(entry.split, entry.band) for entry in catalog.datasets().values()},
        band_backbone=catalog.BAND_BACKBONE,
        band_tier=catalog.BAND_TIER,
        sketches=drawn,
        sketches_absent=absent,
        cells_done=done,
        cells_wanted=wanted,
    )


def _headroom(folder: Path, found: "Panel", features: Path) -> dict[tuple[str, str], float]:
    """What Theorem 2 leaves above the blend path, in points of error, where the features are stored."""
    from kshot.bench.records.folder import Records
    from kshot.bench.work import check_stored
    from kshot.diagnose.headroom import headroom_row
    from kshot.episodes.stratum import load_prior, load_stratum
    from kshot.features.store import Store
    from kshot.report.focus import focus, primary

    store, tier, shown = Store(features), focus(found).tier, primary(found)
    check_stored(Records(folder), store)
    strata = sorted(set(zip(shown.dataset.tolist(), shown.backbone.tolist(), strict=True)))
    return {
        (dataset, backbone): float(
            headroom_row(
                load_stratum(store, dataset, backbone).pool, load_prior(store, dataset, backbone, tier).text
            )["headroom"]
        )
        for dataset, backbone in strata
        if tier in store.tiers(dataset, backbone)
    }


def print_tables(tables: "list[Table]", format: Format) -> None:
    out = console()
    for table in tables:
        if format is Format.rich:
            out.print(table.rich())
        else:
            text = {Format.latex: table.latex, Format.md: table.markdown, Format.csv: table.csv}[format]()
            typer.echo(text, nl=False)
