"""`kshot status`: where a run stands."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import console, existing_records


def status(
    records: Annotated[Path, typer.Argument(help="Records folder, or the study file that filled it.")],
) -> None:
    """Cells done and missing; records undefined and failed, with reasons."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from kshot.bench.status import standing

    folder = existing_records(records)
    found = standing(folder)
    out = console()
    out.print(f"{found.study}, hash {found.hash}, in {folder}", markup=False)
    out.print(
        f"{found.total} cells: {found.done} done, {found.missing} missing, {found.dropped} dropped (thin pool)"
    )
    table = Table("method", box=box.SIMPLE_HEAD)
    for column in ("ok", "undefined", "failed"):
        table.add_column(column, justify="right")
    for name, counts in found.methods.items():
        table.add_row(escape(name), *(str(counts[column]) for column in ("ok", "undefined", "failed")))
    out.print(table)
    for name, reasons in found.reasons.items():
        for reason, count in reasons.most_common(3):
            out.print(f"{name}, {count}×: {reason}", markup=False)
    if found.missing:
        out.print("next: run the same `kshot run` command to compute what is missing")
    if any(counts["failed"] for counts in found.methods.values()):
        out.print("failed methods: repair the cause, then `kshot run STUDY --retry`")
