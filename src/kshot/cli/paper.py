"""`kshot paper`: reproduce the paper, and check its numbers and its theory."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kshot.cli import shared
from kshot.cli.encode import named_file
from kshot.cli.shared import CORES, FEATURES, RECORDS, console, records_and_study
from kshot.data.catalog import COOP_SUFFIX
from kshot.encode.encoders import local_weights
from kshot.encode.hub import DATASETS
from kshot.encode.sources import PLACE
from kshot.errors import InputError, unknown
from kshot.files import write_text
from kshot.paper.claims import paper_claims, read_claims
from kshot.paper.features import Sources
from kshot.paper.folders import MATRIX_STUDY, compare_folders
from kshot.paper.plan import plan_tables
from kshot.paper.reproduce import SMALL, STAGES, Reproduction, Selection, arms
from kshot.paper.summary import arms_table, as_csv, lines_table, places_table, verdict_sentences
from kshot.progress import Progress
from kshot.report.table import Number, Table

app = shared.command_group(add_completion=False, help="Reproduce the paper, and check its numbers and its theory.")


class ShownVerdict(StrEnum):
    """Which lines to print."""

    agrees = "agrees"
    differs = "differs"
    cannot_tell = "cannot-tell"
    shown = "shown"
    not_comparable = "not-comparable"
    not_computed = "not-computed"


@app.command()
def reproduce(
    source: Annotated[str, Argument(help="Where the ten datasets are; {wds} stands for their names.")] = DATASETS,
    study: Annotated[list[str] | None, Option(help="Only this arm of the paper. Repeatable; all unless given.")] = None,
    dataset: shared.OnlyDatasets = None,
    backbone: shared.OnlyBackbones = None,
    tier: shared.OnlyTiers = None,
    small: Annotated[bool, Option("--small", help="DTD, EuroSAT and Pets with ViT-B-16, the matrix only.")] = False,
    plan: Annotated[bool, Option("--plan", help="Print what it takes and compute nothing.")] = False,
    stage: Annotated[str, Option(help=f"End after this stage: {', '.join(STAGES)}.")] = STAGES[-1],
    ignore_gate: Annotated[bool, Option("--ignore-gate", help="Compute datasets outside their band.")] = False,
    coop: Annotated[Path | None, Option(help="Folder with CoOp's split files and their pictures.")] = None,
    sentences: Annotated[list[str] | None, Option(help="cupl=FOLDER of sentences, one file a dataset.")] = None,
    weights: Annotated[list[str] | None, Option(help="Checkpoint as BACKBONE=PATH. Repeatable.")] = None,
    keep_shards: Annotated[Path | None, Option(help="Keep fetched shards in FOLDER/DATASET.")] = None,
    records: shared.RecordsOption = RECORDS,
    features: shared.FeaturesOption = FEATURES,
    batch: Annotated[int, Option(min=1, help="Pictures per step.")] = 32,
    threads: Annotated[int, Option(min=1, help="Threads that decode ahead.")] = 2,
    device: shared.DeviceOption = "auto",
    backend: shared.BackendOption = "loky",
    workers: shared.WorkersOption = CORES,
) -> None:
    """Fetch and encode the paper's datasets, run its matrix and arms, compare; the same command continues."""
    whole = Selection(tuple(dict.fromkeys(study or (SMALL["studies"] if small else ()))))
    for name in study or ():
        if name not in arms():
            raise InputError(unknown("arm", name, arms(), "These are the paper's studies."))
    if stage not in STAGES:
        raise InputError(unknown("stage", stage, STAGES, "They run in this order."))
    cells = [cell for own in whole.loaded() for cell in own.cells()]
    known = {
        "dataset": {cell.dataset.removesuffix(COOP_SUFFIX) for cell in cells},
        "backbone": {cell.backbone for cell in cells},
        "tier": {cell.tier for cell in cells},
    }
    for kind, given in (("dataset", dataset), ("backbone", backbone), ("tier", tier)):
        for name in given or ():
            if name not in known[kind]:
                raise InputError(unknown(kind, name, known[kind], "The chosen studies have these."))
    names = (SMALL["datasets"], SMALL["backbones"]) if small else ((), ())
    choice = replace(whole, datasets=dataset or names[0], backbones=backbone or names[1], tiers=tier or ())
    chosen = {cell.dataset for cell in cells if choice.keep(cell)}
    if not chosen:
        raise InputError("the chosen studies have no cell of these datasets, backbones and tiers together.")
    if PLACE not in source and len({name.removesuffix(COOP_SUFFIX) for name in chosen}) > 1:
        raise InputError(f"{source} is one source for {len(chosen)} datasets. Put {PLACE} where their names differ.")
    if plan:
        for table in plan_tables(features, records, choice, workers, "cpu" if small else device):
            console().print(table)
        return
    sources = Sources(
        source,
        coop,
        local_weights(sorted(known["backbone"]), weights or []),
        dict(named_file(text) for text in sentences or []),
        keep_shards,
        "cpu" if small else device,
        batch,
        threads,
    )
    road = Reproduction(features, records, choice, sources, workers, backend, ignore_gate)
    for sentence in road.run(stage):
        console().print(sentence, markup=False)


@app.command()
def published(
    records: Annotated[Path, Argument(help="Folder of records that the paper's studies share.")] = RECORDS,
    show: Annotated[list[ShownVerdict] | None, Option(help="Print the lines with this verdict. Repeatable.")] = None,
    against: Annotated[
        Path | None, Option(help="Another run's records, or claims in the columns of claims.csv.")
    ] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="CSV file; RECORDS/published.csv otherwise.")] = None,
) -> None:
    """Are these the paper's results, or another run's? What is plain, one test, and every number."""
    folder = records_and_study(MATRIX_STUDY, records)[0]
    is_run = against is not None and against.is_dir()
    claims = paper_claims() if against is None or is_run else read_claims(against)
    judged = compare_folders(folder, claims, against if is_run else None)
    out = console()
    for sentence in verdict_sentences(judged):
        out.print(sentence, markup=False)
    for verdict in show or []:
        wanted = verdict.replace("-", " ")
        out.print(lines_table(judged, [line for line in judged.lines if line.verdict == wanted]))
    if judged.places:
        out.print(places_table(judged))
    out.print(arms_table(judged))
    target = output or folder / "published.csv"
    write_text(target, as_csv(judged))
    out.print(f"wrote {target}", markup=False)


@app.command()
def verify(
    quick: Annotated[bool, Option("--quick", help="A twentieth of the replicates, wider tolerances.")] = False,
) -> None:
    """Check every closed form of the theory by Monte Carlo; exit code 1 if a claim fails."""
    # These load scipy.stats, which takes a second.
    from kshot.theory.checks import CHECKS
    from kshot.theory.checks.trial import FULL, QUICK

    verdicts = []
    with Progress("checks", len(CHECKS), pause=0) as progress:
        for check in CHECKS.values():
            verdicts += check(QUICK if quick else FULL)
            progress.advance(1, check.title)
    rows = tuple(
        (v.claim, Number(v.estimate, ".2g"), Number(v.tolerance, ".2g"), "holds" if v.passed else "FAILS")
        for v in verdicts
    )
    caption = "Estimate: the largest discrepancy found; |z| and z are in standard errors."
    console().print(Table("The theory, verified", ("claim", "estimate", "tolerance", "verdict"), rows, caption))
    failed = [v for v in verdicts if not v.passed]
    if failed:
        typer.echo(f"kshot: {len(failed)} of {len(verdicts)} claims fail.", err=True)
        raise typer.Exit(1)
    typer.echo(f"all {len(verdicts)} claims hold")
