"""`kshot judge`: what a method, and its knob, is worth."""

from typing import Annotated

import typer
from typer import Argument

from kshot.cli import shared
from kshot.cli.run import asked_study
from kshot.cli.shared import CORES, FEATURES, RECORDS, console
from kshot.runs import judge as judge_methods


def judge(
    methods: Annotated[list[str], Argument(help="Methods, as package.module:Class or known names.")],
    study: shared.StudyArgument,
    backend: shared.BackendOption = "loky",
    records: shared.RecordsOption = RECORDS,
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
    output: shared.ReportFolderOption = None,
    on: shared.OnOption = None,
    shots: shared.StudyShotsOption = None,
    least_left: shared.LeastLeftOption = None,
) -> None:
    """Run methods beside zero-shot, the oracle ratio, LOO blend, CLAP and LP++; answer five questions about each."""
    asked = asked_study(study, on, shots, least_left)
    judgement = judge_methods(methods, asked, records=records, features=features, workers=workers, backend=backend)
    out = console()
    for table in judgement.tables:
        out.print(table)
    written = judgement.results.report(output, (judgement.tables, judgement.words))
    out.print(f"wrote {written.page}", markup=False)
    if judgement.leaks:
        raise typer.Exit(1)
