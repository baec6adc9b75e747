"""`kshot slurm`: print an sbatch file for a study."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kshot.cli.shared import DEFAULT_FEATURES, FeaturesOption, RecordsOption, StudyArgument


def slurm(
    study: StudyArgument,
    records: RecordsOption = None,
    features: FeaturesOption = DEFAULT_FEATURES,
    shards: Annotated[int, typer.Option(min=1, help="Array tasks.")] = 16,
    cpus: Annotated[int, typer.Option(min=1, help="Cores, and workers, per task.")] = 4,
) -> None:
    """Print an sbatch array file that runs the study in shards; redirect it to a file and submit that."""
    from kshot.bench.engines.slurm import sbatch_file
    from kshot.bench.records import records_folder
    from kshot.bench.study import load_study

    loaded = load_study(study)
    folder = records_folder(records, loaded.name)
    command = [sys.executable, "-m", "kshot", "run", str(study), "--records", str(folder)]
    command += ["--features", str(features), "--workers", str(cpus)]
    typer.echo(sbatch_file(loaded.name, command, Path.cwd(), Path("."), shards, cpus), nl=False)
