"""SLURM: an array job whose tasks run one shard each. kshot prints the file; you read it and submit it."""

import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from kshot.errors import InputError

TEMPLATE = """\
#!/bin/bash
#SBATCH --job-name=kshot-{name}
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task={cpus}
{limits}#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%a.log
# One shard per task. A task that is killed or requeued computes only what its shard still lacks;
# submit this file again at any time to fill what is missing.
set -euo pipefail
cd {folder}
exec {command} --shard "${{SLURM_ARRAY_TASK_ID}}/{tasks}"
"""


def sbatch_file(name: str, words: Iterable[object], limits: Iterable[str], tasks: int, cpus: int) -> str:
    """The text of an sbatch file that runs `kshot WORDS` in this folder, a shard a task.

    `limits` are options of sbatch: --time=2:00:00, --gres=gpu:1.
    """
    given = list(limits)
    for option in given:
        if not re.fullmatch(r"--?[\w-]+(=[\w.:,@/+-]+)?", option):
            raise InputError(
                f"{option!r} cannot stand in an sbatch file. Write --time=2:00:00, without spaces and quotes."
            )
    command = [sys.executable, "-m", "kshot", *map(str, words)]
    return TEMPLATE.format(
        name=name,
        last=tasks - 1,
        tasks=tasks,
        cpus=cpus,
        limits="".join(f"#SBATCH {option}\n" for option in given),
        folder=shlex.quote(str(Path.cwd())),
        command=shlex.join(command),
    )
