"""`kshot run`: compute the missing records of a study, or say what that would cost."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kshot.bench.forecast import BASIS, forecast
from kshot.bench.query import query
from kshot.bench.records import Records
from kshot.bench.slurm import sbatch_file
from kshot.bench.study import Study, load_study
from kshot.cli import shared
from kshot.cli.shared import CORES, FEATURES, RECORDS
from kshot.data.store import Store
from kshot.errors import InputError
from kshot.progress import human_seconds
from kshot.results import Results
from kshot.runs import drop_head, parse_stratum
from kshot.runs import run as run_study
from kshot.workers import Shard

SupportsOption = Annotated[
    Path | None, Option(help="JSON of the shots to use: {dataset: {K: {seed: ids or row numbers}}}.")
]


def run(
    study: shared.StudyArgument,
    limits: Annotated[list[str] | None, Argument(help="After --: options of sbatch, for --sbatch.")] = None,
    method: shared.MethodOption = None,
    fresh: Annotated[list[str] | None, Option(help="Forget the records of this method first. Repeatable.")] = None,
    on: shared.OnOption = None,
    dataset: shared.OnlyDatasets = None,
    shots: shared.StudyShotsOption = None,
    seeds: Annotated[list[int] | None, Option(min=0, help="Draws instead of the study's own. Repeatable.")] = None,
    least_left: shared.LeastLeftOption = None,
    supports: SupportsOption = None,
    retry: Annotated[bool, Option("--retry", help="Compute the records that failed again.")] = False,
    shard: shared.ShardOption = "0/1",
    plan: Annotated[bool, Option("--plan", help="Print cells, records and time, and compute nothing.")] = False,
    sbatch: Annotated[int | None, Option(min=1, help="Print an sbatch file of so many array tasks.")] = None,
    show: Annotated[bool, Option("--report", help="Print leaderboard and verdict, write the report.")] = False,
    backend: shared.BackendOption = "loky",
    records: shared.RecordsOption = RECORDS,
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
) -> None:
    """Compute the missing records of a study; what is there is never computed again."""
    part, asked = Shard.parse(shard), asked_study(study, on, shots, least_left)
    asked = asked.on_datasets(dataset) if dataset else asked
    asked = asked.with_seeds(seeds or ())
    if plan:
        _print_plan(asked, method or [], records, features)
        return
    if sbatch is not None:
        given = {"--features": [features], "--workers": [workers], "--on": on, "--shots": shots, "--method": method}
        given |= {"--dataset": dataset, "--seeds": seeds, "--least-left": [least_left], "--supports": [supports]}
        words: list[object] = ["run", study, "--records", records]
        words += [word for name, ones in given.items() for one in ones or () if one is not None for word in (name, one)]
        typer.echo(sbatch_file(asked.name, words, limits or [], sbatch, workers), nl=False)
        return
    if limits:
        raise InputError(f"'{limits[0]}' is too much; words after -- are options of sbatch and need --sbatch N.")
    for name in fresh or ():
        dropped = drop_head(asked.with_methods([name]), name, records, features)
        typer.echo(f"forgot {dropped} records of {name}")
    results = run_study(
        asked,
        heads=method or (),
        supports=supports,
        records=records,
        features=features,
        workers=workers,
        backend=backend,
        retry=retry,
        shard=part,
    )
    if show:
        results = results.by("accuracy")
        shared.console().print(results.leaderboard())
        print_verdict(results)
        typer.echo(f"wrote {results.report().page}")
    else:
        typer.echo(f"next: kshot report {asked.name}{'' if records == RECORDS else f' --records {records}'}")
    _end_if_incomplete(results, part)


def asked_study(study: Path, on: list[str] | None, shots: list[int] | None, least: int | None) -> Study:
    """Load a study, and change it as --on, --shots and --least-left say."""
    asked = load_study(study)
    asked = asked.on_features([parse_stratum(text) for text in on]) if on else asked
    return asked.with_shots(shots or ()).with_least_left(least)


def print_verdict(results: Results) -> None:
    out = shared.console()
    for sentence in results.verdict():
        out.print(f"• {sentence}", markup=False)
    out.print()


def _end_if_incomplete(results: Results, part: Shard) -> None:
    """Print which methods failed or what is missing, and exit with 1."""
    failed = results.failures()
    for words in failed:
        typer.echo(f"kshot: {words}. Type `kshot status {results.name}`.", err=True)
    if failed or (part.count == 1 and results.unfinished):
        raise typer.Exit(1)


def _print_plan(study: Study, trusted: list[str], records: Path, features: Path) -> None:
    """Cells, records and time before anything runs; features need not be there yet."""
    loaded = study.with_methods(trusted)
    # A study file may come from anywhere: only code that the user names on the command line is imported.
    skipped = [spec.use for spec in loaded.methods().values() if ":" in spec.use and spec.use not in trusted]
    asked = query(loaded.without(skipped), Store(features), must_be_stored=False)
    cost = forecast(asked, Records(records))
    thin = f", {len(asked.dropped):,} left out (thin pool)" if asked.dropped else ""
    lines = [
        f"study {loaded.name}, {loaded.dtype}",
        f"cells    {len(asked.cells):,}{thin}",
        f"records  {cost.there:,} there, {cost.missing:,} missing",
    ]
    if unstored := asked.unstored():
        listed = ", ".join(f"{dataset}/{backbone}" for dataset, backbone in unstored[:3])
        lines.append(f"features {len(unstored)} of {len(asked.strata)} strata not stored in {features}: {listed} …")
    lines.append(f"methods  {', '.join(loaded.methods())}")
    if skipped:
        lines.append(f"not imported and not counted: {', '.join(skipped)}; add `--method {skipped[0]}` if you trust it")
    if cost.missing:
        lines.append(f"time     about {human_seconds(cost.seconds)} of one core. {BASIS}")
    if cost.unknown:
        lines.append(f"         without {', '.join(cost.unknown)}: no record of these was timed in {records}")
    out = shared.console()
    for line in lines:
        out.print(line, markup=False)
