"""`kshot road`: the whole paper in one command."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, DEFAULT_WORKERS, EngineOption, FeaturesOption, WorkersOption, console


def road(
    records: Annotated[Path, typer.Option(help="Folder of the arms' records folders.")] = Path("records"),
    study: Annotated[
        list[str] | None, typer.Option(help="Only this arm of the paper. Repeatable; all unless given.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show what each arm takes and compute nothing.")] = False,
    engine: EngineOption = "local",
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
) -> None:
    """The whole paper: run matrix and arms, measure probes, write reports, compare; run it again to go on."""
    from kshot.bench.study import load_study
    from kshot.errors import KshotError, unknown
    from kshot.paper.reproduce import arms, plan_table, reproduce

    for name in study or ():
        if name not in arms():
            raise KshotError(unknown("arm", name, arms(), "These are the paper's studies."))
    if plan:
        console().print(plan_table(features, records, study or arms()))
        return
    studies = [load_study(name) for name in study or arms()]
    for sentence in reproduce(features, records, studies, workers=workers, engine=engine):
        console().print(sentence, markup=False)
