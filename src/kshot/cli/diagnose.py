"""`kshot diagnose`: why a blend wins or loses on stored features."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, console, existing_records


def diagnose(
    dataset: Annotated[str, typer.Argument(help="A dataset with stored features; see `kshot ls features`.")],
    backbone: Annotated[str, typer.Argument(help="A backbone it was encoded with.")],
    tier: Annotated[str, typer.Option(help="Prompt tier of the text prototypes.")] = "dataset",
    shots: Annotated[
        list[int] | None, typer.Option(help="Shots per class. Repeatable; 1, 2, 4, 8, 16 unless given.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=2, help="Support draws at each shot count.")] = 5,
    records: Annotated[
        Path | None, typer.Option(help="Records folder: show its probes too, pooled over all strata.")
    ] = None,
    features: FeaturesOption = DEFAULT_FEATURES,
) -> None:
    """One stratum: why blending wins or loses on it, by what the theory predicts (offset, headroom, precision, …)."""
    import pyarrow as pa

    from kshot.data.store import Store
    from kshot.data.stratum import load_prior, load_stratum
    from kshot.progress import Progress
    from kshot.report.context import read_probes
    from kshot.report.tables.one_stratum import stratum_tables
    from kshot.results import load_records
    from kshot.theory.probes.measure import measure_stratum
    from kshot.theory.probes.stored import probe_rows

    out, store = console(), Store(features)
    folder = None if records is None else existing_records(records)
    stratum = load_stratum(store, dataset, backbone)
    text = load_prior(store, dataset, backbone, tier).text
    with Progress("", pause=0.0) as progress:
        counts = shots or [1, 2, 4, 8, 16]
        measured = measure_stratum(stratum, text, tier, counts, range(seeds), lambda what: progress.advance(1, what))
    if stratum.simulated:
        out.print("These features are simulated; they say nothing about pictures.")
    for table in stratum_tables(read_probes(pa.Table.from_pylist(probe_rows(measured)))):
        out.print(table)
    if folder is not None:
        out.print(load_records(folder, features=features).table("probes"))
