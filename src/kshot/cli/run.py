"""`kshot run`, `plan` and `slurm`: compute the missing cells of a study, or say what that would cost."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from kshot.bench.engines.slurm import sbatch_file
from kshot.bench.plan import FORECAST_BASIS, forecast
from kshot.bench.records import Records, records_around, records_folder
from kshot.bench.run import StudyShard, choose_engine, complete, with_supports
from kshot.bench.status import failed_records
from kshot.bench.study import Study, load_study
from kshot.bench.work import Work, find_work
from kshot.cli import shared
from kshot.cli.shared import CORES, FEATURES
from kshot.data.store import Store
from kshot.errors import InputError
from kshot.progress import human_bytes, human_seconds
from kshot.results import Results, load_records
from kshot.runs import forget_failures, parse_stratum, verify_methods

SupportsOption = Annotated[
    Path | None, Option(help="JSON of the shots to use: {dataset: {K: {seed: ids or row numbers}}}.")
]


def run(
    study: shared.StudyArgument,
    method: shared.MethodOption = None,
    engine: shared.EngineOption = "local",
    records: shared.RecordsOption = None,
    features: shared.FeaturesOption = FEATURES,
    workers: shared.WorkersOption = CORES,
    shard: shared.ShardOption = "0/1",
    on: shared.OnOption = None,
    shots: shared.StudyShotsOption = None,
    min_residue: shared.MinResidueOption = None,
    supports: SupportsOption = None,
    retry: Annotated[bool, Option("--retry", help="Compute the cells with a failed method again.")] = False,
    verified: Annotated[bool, Option("--verify", help="Run your own methods again without test labels.")] = False,
    show: Annotated[bool, Option("--report", help="Print leaderboard and verdict, write the report.")] = False,
) -> None:
    """Compute the missing cells of a study; finished cells are never computed again."""
    part, chosen = StudyShard.parse(shard), choose_engine(engine, workers)
    asked = asked_study(study, on, shots, min_residue)
    asked = with_supports(asked, supports, features)
    if retry:
        if part.count > 1:
            raise InputError("--retry takes the whole study. Leave --shard out.")
        forget_failures(asked.with_methods(method or []), records, features)
    folder = complete(asked, records, features, chosen, method or (), part)
    if show:
        results = load_records(folder, features=features)
        shared.console().print(results.leaderboard())
        print_verdict(results)
        typer.echo(f"wrote {results.report().page}")
    else:
        typer.echo(f"next: kshot report {folder}")
    differing = verified and _verify(folder, features)
    _end_if_failed(folder)
    if differing:
        raise typer.Exit(1)


def asked_study(study: Path, on: list[str] | None, shots: list[int] | None, least: int | None) -> Study:
    """Load a study, and change it as --on, --shots and --min-residue say."""
    asked = load_study(study)
    asked = asked.on_features([parse_stratum(text) for text in on]) if on else asked
    asked = asked.with_shots(shots) if shots else asked
    return asked if least is None else asked.with_min_residue(least)


def print_verdict(results: Results) -> None:
    out = shared.console()
    for sentence in results.verdict():
        out.print(f"• {sentence}", markup=False)
    out.print()


def _verify(folder: Path, features: Path) -> bool:
    """Run cells of foreign methods again without test labels; True if one differs."""
    found = verify_methods(folder, features)
    for detection in found:
        typer.echo(str(detection))
    if not found:
        typer.echo("Nothing to verify: every method of this study is part of kshot.")
    return any(detection.differences for detection in found)


def _end_if_failed(folder: Path) -> None:
    """Print how often each method failed and exit with 1 if one did."""
    failed = failed_records(Records(folder))
    if failed:
        each = ", ".join(f"{count} of {name}" for name, count in failed.items())
        typer.echo(f"kshot: finished with failed records: {each}. Type `kshot status {folder}`.", err=True)
        raise typer.Exit(1)


def plan(
    study: shared.StudyArgument,
    method: shared.MethodOption = None,
    records: shared.RecordsOption = None,
    features: shared.FeaturesOption = FEATURES,
    on: shared.OnOption = None,
    shots: shared.StudyShotsOption = None,
    min_residue: shared.MinResidueOption = None,
) -> None:
    """Print cells, time, disk and memory of a study before anything runs; features need not be there yet."""
    trusted = method or []
    loaded = asked_study(study, on, shots, min_residue).with_methods(trusted)
    # A study file may come from anywhere: only code that the user names on the command line is imported.
    skipped = [spec.use for spec in loaded.methods().values() if ":" in spec.use and spec.use not in trusted]
    target = Records(records_folder(records, loaded.name))
    work = find_work(loaded.without(skipped), Store(features), target, must_be_stored=False)
    (expected,) = forecast([work], records_around(target.folder.parent))
    lines = [
        f"study {loaded.name}, hash {loaded.hash}, {loaded.dtype}",
        f"cells    {len(work.cells):,}",
        f"dropped  {len(work.dropped):,} ({work.why_dropped}{_kept(work)})",
        f"done     {work.done:,}",
        f"missing  {len(work.missing):,}",
    ]
    if work.unstored:
        listed = ", ".join(f"{dataset}/{backbone}" for dataset, backbone in work.unstored[:3])
        lines.append(f"features {len(work.unstored)} of {len(work.strata)} strata not stored in {features}: {listed} …")
    lines.append(f"methods  {', '.join(loaded.methods())}")
    if skipped:
        lines.append(f"not imported and not counted: {', '.join(skipped)}; add `--method {skipped[0]}` if you trust it")
    lines += [
        f"time     about {human_seconds(expected.cpu_seconds)} of one core",
        *([f"         without {', '.join(expected.unknown)}: no timings of these yet"] if expected.unknown else []),
        f"disk     about {human_bytes(expected.disk_bytes)}",
        f"memory   about {human_bytes(expected.memory_bytes)} of each worker",
        FORECAST_BASIS,
    ]
    out = shared.console()
    for line in lines:
        out.print(line, markup=False)


def _kept(work: Work) -> str:
    return f"; kept: {len(work.whole_pool)} whose shots are the whole pool" if work.whole_pool else ""


def slurm(
    study: shared.StudyArgument,
    method: shared.MethodOption = None,
    on: shared.OnOption = None,
    shots: shared.StudyShotsOption = None,
    min_residue: shared.MinResidueOption = None,
    supports: SupportsOption = None,
    records: shared.RecordsOption = None,
    features: shared.FeaturesOption = FEATURES,
    shards: Annotated[int, Option(min=1, help="Array tasks.")] = 16,
    cpus: Annotated[int, Option(min=1, help="Cores, and workers, per task.")] = 4,
    time: Annotated[str | None, Option(help="Time limit of a task, as sbatch takes it: 2:00:00 or 1-12.")] = None,
    partition: Annotated[str | None, Option(help="Partition to run in.")] = None,
    account: Annotated[str | None, Option(help="Account to charge.")] = None,
    memory: Annotated[str | None, Option(help="Memory of a task: 8G.")] = None,
    gpus: Annotated[str | None, Option(help="GPUs of a task, as sbatch takes them: 1 or a100:1.")] = None,
) -> None:
    """Print an sbatch array file that runs a study in shards; redirect it to a file and submit that."""
    asked = asked_study(study, on, shots, min_residue)
    given = {"--features": [features], "--workers": [cpus], "--on": on, "--shots": shots, "--method": method}
    given |= {"--min-residue": [min_residue], "--supports": [supports]}
    options = {name: [one for one in ones or () if one is not None] for name, ones in given.items()}
    limits = {"time": time, "partition": partition, "account": account, "mem": memory, "gpus-per-task": gpus}
    folder = records_folder(records, asked.name)
    typer.echo(sbatch_file(asked.name, study, folder, options, limits, shards, cpus), nl=False)
