"""`kshot paper`: reproduce the paper, and check its numbers, intervals, precision and theory."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kshot.bench.records import Records
from kshot.bench.study import load_study
from kshot.cli import shared
from kshot.cli.records import print_difference
from kshot.cli.shared import CORES, FEATURES, console, existing_records
from kshot.errors import InputError, StudyError, unknown
from kshot.files import write_text
from kshot.paper.claims import paper_claims, read_claims
from kshot.paper.compare import arms_table, as_csv, lines_table, verdict_sentences
from kshot.paper.folders import compare_folders
from kshot.paper.reproduce import arms, plan_table
from kshot.paper.reproduce import reproduce as run_arms
from kshot.progress import Progress
from kshot.report.slices import primary
from kshot.report.table import Number, Table
from kshot.results import load_records
from kshot.runs import compare_precisions
from kshot.stats.coverage import PAPER_DESIGN, Design, matched_design, simulate_coverage

app = shared.command_group(add_completion=False, help="Reproduce the paper, and check its numbers and its theory.")


class ShownVerdict(StrEnum):
    """Which lines to print."""

    agrees = "agrees"
    differs = "differs"
    cannot_tell = "cannot-tell"
    not_computed = "not-computed"


@app.command()
def reproduce(
    records: Annotated[Path, Option(help="Folder of the arms' records folders.")] = Path("records"),
    study: Annotated[list[str] | None, Option(help="Only this arm of the paper. Repeatable; all unless given.")] = None,
    plan: Annotated[bool, Option("--plan", help="Print what each arm takes and compute nothing.")] = False,
    engine: shared.EngineOption = "local",
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
) -> None:
    """Run the matrix and all arms, measure probes, write reports, compare; the same command continues."""
    for name in study or ():
        if name not in arms():
            raise InputError(unknown("arm", name, arms(), "These are the paper's studies."))
    if plan:
        console().print(plan_table(features, records, study or arms()))
        return
    studies = [load_study(name) for name in study or arms()]
    for sentence in run_arms(features, records, studies, workers=workers, engine=engine):
        console().print(sentence, markup=False)


@app.command()
def published(
    records: Annotated[Path, Argument(help="Records folder (arms beside it are read too), or a folder of several.")],
    show: Annotated[list[ShownVerdict] | None, Option(help="Print the lines with this verdict. Repeatable.")] = None,
    against: Annotated[
        Path | None, Option(help="Another run's records, or claims as in claims.csv.")
    ] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="CSV file; RECORDS/published.csv otherwise.")] = None,
) -> None:
    """Are these the paper's results, or another run's? Every number: agrees, differs, cannot tell, not computed."""
    folder = existing_records(records)
    is_run = against is not None and against.is_dir()
    claims = paper_claims() if against is None or is_run else read_claims(against)
    judged = compare_folders(folder, claims, against if is_run else None)
    out = console()
    if Records(folder).imported():
        out.print("These records are IMPORTED: kshot did not compute them.")
    for sentence in verdict_sentences(judged):
        out.print(sentence, markup=False)
    for verdict in show or []:
        wanted = verdict.replace("-", " ")
        out.print(lines_table(judged, [line for line in judged.lines if line.verdict == wanted]))
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
    from kshot.paper.checks import CHECKS
    from kshot.paper.checks.trial import FULL, QUICK

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


@app.command()
def coverage(
    records: Annotated[Path | None, Argument(help="Take variances from these; the paper's unless given.")] = None,
    method: Annotated[str, Option(help="The contrast whose variances are matched.")] = "clap",
    baseline: Annotated[str, Option(help="What it is compared with.")] = "oracle_lambda",
    trials: Annotated[int, Option(min=100, help="Simulated worlds.")] = 20_000,
) -> None:
    """Simulate how often nominal 95 % intervals hold the true mean, percentile and Student-t."""
    design = PAPER_DESIGN if records is None else _matched_design(existing_records(records), method, baseline)
    simulated = simulate_coverage(design, trials)
    error = f"(Monte Carlo error {100 * simulated.error:.1f})"
    out = console()
    out.print(
        f"{len(design.sizes)} clusters of {min(design.sizes)} to {max(design.sizes)} cells; standard deviation "
        f"{design.between:.2f} between and {design.within:.2f} within; {simulated.trials} simulated worlds"
    )
    out.print(f"percentile interval  {100 * simulated.percentile:.1f} %")
    out.print(f"Student-t interval   {100 * simulated.student_t:.1f} %  {error}")


def _matched_design(folder: Path, method: str, baseline: str) -> Design:
    shown = primary(load_records(folder).panel)
    for name in (method, baseline):
        if name not in shown.methods:
            raise StudyError(unknown("method", name, shown.methods, "Choose with --method and --baseline."))
    if len(set(shown.dataset.tolist())) < 2:
        raise StudyError("coverage needs records of at least two datasets: an interval is over datasets.")
    return matched_design(shown.column(method) - shown.column(baseline), shown.dataset)


@app.command()
def precision(
    study: shared.StudyArgument,
    dataset: shared.OnlyDatasets = None,
    engine: shared.EngineOption = "local",
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
) -> None:
    """Run a study in float32 and in float64 and compare the two."""
    moved = compare_precisions(study, dataset or (), features=features, workers=workers, engine=engine)
    print_difference(moved, "float64 minus float32")
