"""How long the quick commands take to answer, beside Python's own start-up."""

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import SMALL
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

        def call(command: list[str]) -> str:
            return subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout

        call([*kshot, "run", "tiny.toml"])
        bare = best_seconds(lambda: call([sys.executable, "-c", "pass"]), 5)
        for arguments in (["--help"], ["ls"], ["status", "records/tiny"]):
            assert call([*kshot, *arguments]), "it printed nothing"
            seconds = best_seconds(lambda a=arguments: call([*kshot, *a]), 1 if SMALL else 5)
            missed += seconds > ALLOWED_SECONDS and not SMALL
            print(
                f"kshot {arguments[0]}: {seconds:.2f} s, {seconds / bare:.0f}× bare Python (allowed {ALLOWED_SECONDS})"
            )
    return missed
