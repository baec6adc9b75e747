"""Keep the finished records of the open benchmark and their report in the docs: `make open`."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "open"
FIGURES = ("accuracy_by_shots", "bars")

if __name__ == "__main__":
    records = ROOT / "records" / "open"
    shutil.rmtree(KEPT, ignore_errors=True)
    shutil.copytree(records / "compact", KEPT / "records" / "compact")
    shutil.copy(records / "study.json", KEPT / "records")
    shutil.copy(records / "report" / "report.md", KEPT)
    for name in FIGURES:
        shutil.copy(records / "report" / "figures" / f"{name}.png", KEPT)
