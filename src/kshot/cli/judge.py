"""`kshot judge`: the five things to know about a new method."""

from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.run import DEFAULT_WORKERS, WorkersOption, chosen_engine, compute_and_tell
from kshot.cli.shared import (
    DEFAULT_FEATURES,
    FeaturesOption,
    RecordsOption,
    StudyArgument,
    console,
    own_modules,
    records_folder,
)


def judge(
    method: Annotated[str, typer.Argument(help="The newcomer, as package.module:Class or a known name.")],
    study: StudyArgument,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    workers: WorkersOption = DEFAULT_WORKERS,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write to; RECORDS/report unless given.")
    ] = None,
) -> None:
    """Run a method beside zero-shot, the oracle ratio, the LOO blend, CLAP and LP++ on a study, and judge it."""
    from kshot.bench.newcomer import judged_study, knob_oracle
    from kshot.bench.records.folder import Records
    from kshot.bench.study import load_study
    from kshot.bench.work import finished_cells
    from kshot.features.store import Store
    from kshot.report.questions import OwnKnob, judgement, judgement_table
    from kshot.results import load_records
    from kshot.stats.panel import CELL

    own_modules()
    judged = judged_study(load_study(study), method)
    target = Records(records_folder(records, judged.name))
    compute_and_tell(judged, features, target, chosen_engine("local", workers, None))
    found = load_records(target.folder, features=features)
    oracle = knob_oracle(judged, finished_cells(target), method, Store(features))
    knob = None
    if oracle is not None:
        values = {tuple(getattr(cell, name) for name in CELL): 100 * v for cell, v in oracle.accuracy.items()}
        knob = OwnKnob(oracle.name, values)
    table = judgement_table(found.panel, method, knob)
    out = console()
    out.print(table)
    written = found.report(output, (table, judgement(found.panel, method, knob)))
    out.print(f"wrote {written.page}", markup=False)
