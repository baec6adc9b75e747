"""SLURM: an array job whose tasks run one shard each. kshot prints the file; you read it and submit it."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from kshot.errors import InputError

TEMPLATE = """\
#!/bin/bash
#SBATCH --job-name=kshot-{name}
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task={cpus}
{asked}#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={logs}/%x-%a.log
# One shard per task. A task that is killed or requeued computes only what its shard still lacks;
# submit this file again at any time to fill what is missing.
set -euo pipefail
cd {folder}
exec {command} --shard "${{SLURM_ARRAY_TASK_ID}}/{shards}"
"""


def sbatch_file(
    name: str, command: list[str], folder: Path, logs: Path, shards: int, cpus: int, asked: Mapping[str, str]
) -> str:
    """The text of an sbatch file; nothing is submitted. `asked` are further options of sbatch by their names."""
    for option, value in asked.items():
        if not re.fullmatch(r"[\w.:,@/+-]+", value):
            raise InputError(f"--{option} {value!r} cannot stand in an sbatch file. Give it without spaces and quotes.")
    return TEMPLATE.format(
        name=name,
        last=shards - 1,
        shards=shards,
        cpus=cpus,
        asked="".join(f"#SBATCH --{option}={value}\n" for option, value in asked.items()),
        logs=logs,
        folder=shlex.quote(str(folder)),
        command=shlex.join(command),
    )
