"""How long the quick commands take to answer, beside Python's own start-up."""

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import best_seconds

STUDY = """
name = "tiny"
datasets = ["sim-satellite"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1, 2, 4]
seeds = [0]
methods = ["zero_shot", "ncm"]
"""
ALLOWED_SECONDS = 0.5


def main() -> int:
    kshot = [str(Path(sys.executable).parent / "kshot")]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tiny.toml").write_text(STUDY)

        def call(command: list[str]) -> None:
            subprocess.run(command, cwd=folder, capture_output=True, check=True)

        call([*kshot, "run", "tiny.toml"])
        bare = best_seconds(lambda: call([sys.executable, "-c", "pass"]), 5)
        for arguments in (["--help"], ["ls"], ["status", "records/tiny"]):
            seconds = best_seconds(lambda a=arguments: call([*kshot, *a]), 5)
            missed += seconds > ALLOWED_SECONDS
            print(
                f"kshot {arguments[0]}: {seconds:.2f} s, {seconds / bare:.0f}× bare Python (allowed {ALLOWED_SECONDS})"
            )
    return missed
