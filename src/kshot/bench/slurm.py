"""SLURM: an array job whose tasks run one shard each. kshot prints the file; you read it and submit it."""

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
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


def sbatch_file(
    name: str,
    study: Path,
    records: Path,
    options: Mapping[str, Iterable[object]],
    limits: Iterable[str],
    tasks: int,
    cpus: int,
) -> str:
    """The text of an sbatch file that runs a study in this folder.

    `options` are those of `kshot run`, each as often as it has values; `limits` are those of sbatch: --time=2:00:00.
    """
    given = list(limits)
    for option in given:
        if not re.fullmatch(r"--?[\w-]+(=[\w.:,@/+-]+)?", option):
            raise InputError(
                f"{option!r} cannot stand in an sbatch file. Write --time=2:00:00, without spaces and quotes."
            )
    command = [sys.executable, "-m", "kshot", "run", str(study), "--records", str(records)]
    command += [word for option, values in options.items() for value in values for word in (option, str(value))]
    return TEMPLATE.format(
        name=name,
        last=tasks - 1,
        tasks=tasks,
        cpus=cpus,
        limits="".join(f"#SBATCH {option}\n" for option in given),
        folder=shlex.quote(str(Path.cwd())),
        command=shlex.join(command),
    )
