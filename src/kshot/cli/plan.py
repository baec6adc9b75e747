"""`kshot plan` and `kshot slurm`: what a run would cost, and a file that runs it on SLURM."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kshot.cli import shared
from kshot.cli.shared import FEATURES


def plan(
    study: shared.StudyArgument,
    method: shared.MethodOption = None,
    records: shared.RecordsOption = None,
    features: shared.FeaturesOption = FEATURES,
) -> None:
    """Print cells, time, disk and memory of a study before anything runs; features need not be there yet."""
    from kshot.bench.plan import FORECAST_BASIS, forecast
    from kshot.bench.records import Records, records_around, records_folder
    from kshot.bench.study import load_study
    from kshot.bench.work import find_work
    from kshot.data.store import Store
    from kshot.progress import human_seconds

    trusted = method or []
    loaded = load_study(study).with_methods(trusted)
    # A study file may come from anywhere: only code that the user names on the command line is imported.
    skipped = [spec.use for spec in loaded.methods().values() if ":" in spec.use and spec.use not in trusted]
    target = Records(records_folder(records, loaded.name))
    work = find_work(loaded.without(skipped), Store(features), target, must_be_stored=False)
    (expected,) = forecast([work], records_around(target.folder.parent))
    lines = [
        f"study {loaded.name}, hash {loaded.hash}, {loaded.dtype}",
        f"cells    {len(work.cells):,}",
        f"dropped  {len(work.dropped):,} (a class would keep fewer than {loaded.least_residue} pool pictures)",
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
        f"disk     about {_human_bytes(expected.disk_bytes)}",
        f"memory   about {_human_bytes(expected.memory_bytes)} of each worker",
        FORECAST_BASIS,
    ]
    out = shared.console()
    for line in lines:
        out.print(line, markup=False)


def _human_bytes(size: float) -> str:
    if size < 1e6:
        return f"{size:.0f} B" if size < 1000 else f"{size / 1e3:.0f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def slurm(
    study: shared.StudyArgument,
    records: shared.RecordsOption = None,
    features: shared.FeaturesOption = FEATURES,
    shards: Annotated[int, typer.Option(min=1, help="Array tasks.")] = 16,
    cpus: Annotated[int, typer.Option(min=1, help="Cores, and workers, per task.")] = 4,
) -> None:
    """Print an sbatch array file that runs a study in shards; redirect it to a file and submit that."""
    from kshot.bench.engines.slurm import sbatch_file
    from kshot.bench.records import records_folder
    from kshot.bench.study import load_study

    loaded = load_study(study)
    folder = records_folder(records, loaded.name)
    command = [sys.executable, "-m", "kshot", "run", str(study), "--records", str(folder)]
    command += ["--features", str(features), "--workers", str(cpus)]
    typer.echo(sbatch_file(loaded.name, command, Path.cwd(), Path("."), shards, cpus), nl=False)
