"""Keep the finished records of a study and their report in the docs: `make open`, `make clip`."""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ("accuracy_by_shots", "bars")

if __name__ == "__main__":
    (study,) = sys.argv[1:]
    records, kept = ROOT / "records" / study, ROOT / "docs" / study
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(records / "compact", kept / "records" / "compact")
    shutil.copy(records / "study.json", kept / "records")
    shutil.copy(records / "report" / "report.md", kept)
    for name in FIGURES:
        shutil.copy(records / "report" / "figures" / f"{name}.png", kept)
