"""SLURM: an array job whose tasks run one shard each. kshot prints the file; you read it and submit it."""

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

TEMPLATE = """\
#!/bin/bash
#SBATCH --job-name=kshot-{name}
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task={cpus}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%a.log
# Time limit, partition, account, memory: sbatch --time=2:00:00 --partition=NAME --mem=8G THIS_FILE
# One shard per task. A task that is killed or requeued computes only what its shard still lacks;
# submit this file again at any time to fill what is missing.
set -euo pipefail
cd {folder}
exec {command} --shard "${{SLURM_ARRAY_TASK_ID}}/{tasks}"
"""


def sbatch_file(
    name: str, study: Path, records: Path, options: Mapping[str, Iterable[object]], tasks: int, cpus: int
) -> str:
    """The text of an sbatch file that runs a study in this folder with these options of `kshot run`, each as often as
    it has values."""
    command = [sys.executable, "-m", "kshot", "run", str(study), "--records", str(records)]
    command += [word for option, values in options.items() for value in values for word in (option, str(value))]
    folder = shlex.quote(str(Path.cwd()))
    return TEMPLATE.format(
        name=name, last=tasks - 1, tasks=tasks, cpus=cpus, folder=folder, command=shlex.join(command)
    )
