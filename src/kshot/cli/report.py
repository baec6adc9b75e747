"""`kshot report`: tables from records."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import console, existing_records


def report(
    records: Annotated[Path, typer.Argument(help="Records folder, or the study file that filled it.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; RECORDS/report unless given.")
    ] = None,
) -> None:
    """Print the tables and write them as Markdown and as a page."""
    from kshot.bench.records import load
    from kshot.report.tables import all_tables
    from kshot.report.write import write_report
    from kshot.stats.panel import panel

    folder = existing_records(records)
    found = panel(load(folder))
    tables = all_tables(found)
    out = console()
    for table in tables:
        out.print(table.rich())
    for path in write_report(found, tables, output or folder / "report"):
        out.print(f"wrote {path}", markup=False)
