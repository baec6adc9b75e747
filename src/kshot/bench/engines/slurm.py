"""SLURM: an array job whose tasks run one shard each. kshot prints the file; you read it and submit it."""

import shlex
from pathlib import Path

TEMPLATE = """\
#!/bin/bash
#SBATCH --job-name=kshot-{name}
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task={cpus}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={logs}/%x-%a.log
# One shard per task. A task that is killed or requeued computes only what its shard still lacks;
# submit this file again at any time to fill what is missing.
set -euo pipefail
cd {folder}
exec {command} --shard "${{SLURM_ARRAY_TASK_ID}}/{shards}"
"""


def sbatch_file(name: str, command: list[str], folder: Path, logs: Path, shards: int, cpus: int) -> str:
    """The text of an sbatch file; nothing is submitted."""
    return TEMPLATE.format(
        name=name,
        last=shards - 1,
        shards=shards,
        cpus=cpus,
        logs=logs,
        folder=shlex.quote(str(folder)),
        command=shlex.join(command),
    )
