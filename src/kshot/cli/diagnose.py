"""`kshot diagnose`: why a blend wins or loses on stored features."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, console, existing_records

if TYPE_CHECKING:
    from kshot.report.table import Table
    from kshot.theory.probes.section import Section


def diagnose(
    dataset: Annotated[str, typer.Argument(help="A dataset with stored features; see `kshot ls features`.")],
    backbone: Annotated[str, typer.Argument(help="A backbone it was encoded with.")],
    tier: Annotated[str, typer.Option(help="Prompt tier of the text prototypes.")] = "dataset",
    shots: Annotated[
        list[int] | None, typer.Option(help="Shots per class. Repeatable; 1, 2, 4, 8, 16 unless given.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=2, help="Support draws at each shot count.")] = 5,
    records: Annotated[Path | None, typer.Option(help="Records folder, for the probes that compare strata.")] = None,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """One stratum: why blending wins or loses on it, by what the theory predicts (offset, headroom, precision, …)."""
    from kshot.data.store import Store
    from kshot.data.stratum import load_prior, load_stratum
    from kshot.progress import Progress
    from kshot.theory.probes.over_records import diagnose_records
    from kshot.theory.probes.stratum_tables import diagnose_stratum

    out, store = console(), Store(features)
    folder = None if records is None else existing_records(records)
    stratum = load_stratum(store, dataset, backbone)
    text = load_prior(store, dataset, backbone, tier).text
    with Progress("", pause=0.0) as progress:

        def heard(what: str) -> None:
            progress.advance(1, what)

        sections = diagnose_stratum(stratum, text, shots or [1, 2, 4, 8, 16], range(seeds), heard)
        if folder is not None:
            heard("records")
            sections += diagnose_records(folder, store, tier)
    if stratum.simulated:
        out.print("These features are simulated; they say nothing about pictures.")
    for section in sections:
        out.print(_table(section))


def _table(section: "Section") -> "Table":
    from kshot.report.table import ABSENT, Number, Table, TableCell

    def cell(value: str | int | float) -> TableCell:
        return value if isinstance(value, str) else Number(value, ".3g" if isinstance(value, float) else "d")

    columns = tuple(dict.fromkeys(name for row in section.rows for name in row))
    rows = tuple(tuple(cell(row.get(name, ABSENT)) for name in columns) for row in section.rows)
    return Table(section.title, columns, rows, section.note)
