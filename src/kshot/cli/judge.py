"""`kshot judge`: the five things to know about a new method."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import (
    DEFAULT_FEATURES,
    DEFAULT_WORKERS,
    EngineOption,
    FeaturesOption,
    RecordsOption,
    StudyArgument,
    WorkersOption,
    console,
)


def judge(
    method: Annotated[str, typer.Argument(help="The newcomer, as package.module:Class or a known name.")],
    study: StudyArgument,
    engine: EngineOption = "local",
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; RECORDS/report unless given.")
    ] = None,
) -> None:
    """A new method: run it beside zero-shot, the oracle ratio, LOO blend, CLAP and LP++; answer five questions."""
    from kshot.runs import judge as judge_newcomer

    told = judge_newcomer(method, study, records=records, features=features, workers=workers, engine=engine)
    out = console()
    out.print(told.table)
    written = told.results.report(output, (told.table, told.words))
    for detection in told.detections:
        out.print(str(detection), markup=False)
    out.print(f"wrote {written.page}", markup=False)
    if any(detection.differences for detection in told.detections):
        raise typer.Exit(1)
