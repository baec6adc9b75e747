"""`kshot published`: what the paper printed, beside what these records say."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import console, existing_records


class ShownVerdict(StrEnum):
    """Which lines to print."""

    agrees = "agrees"
    differs = "differs"
    not_computed = "not-computed"
    not_reproducible = "not-reproducible"


def published(
    records: Annotated[
        Path, typer.Argument(help="A records folder (arms beside it are read too), or a folder of such folders.")
    ],
    show: Annotated[
        list[ShownVerdict] | None, typer.Option(help="Print the lines with this verdict. Repeatable.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another registry than the paper's, in the columns of its claims.csv.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The CSV file; published.csv in RECORDS unless given.")
    ] = None,
) -> None:
    """The paper: every number of it beside the records (agrees, differs, not computed, not reproducible)."""
    from kshot.files import write_text
    from kshot.paper.claims import paper_claims, read_claims
    from kshot.paper.compare import arms_table, as_csv, lines_table, verdict_sentences
    from kshot.paper.folders import compare_folders

    folder = existing_records(records)
    lines, simulated = compare_folders(folder, paper_claims() if against is None else read_claims(against))
    out = console()
    for verdict in show or []:
        wanted = verdict.replace("-", " ")
        out.print(lines_table([line for line in lines if line.verdict.startswith(wanted)], simulated))
    out.print(arms_table(lines, simulated))
    # The table's caption has the first of them.
    for sentence in verdict_sentences(lines, simulated)[1 + simulated :]:
        out.print(sentence, markup=False)
    target = output or folder / "published.csv"
    write_text(target, as_csv(lines))
    out.print(f"wrote {target}", markup=False)
