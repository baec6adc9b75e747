"""From nothing to report and comparison, on generated features under the paper's names."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[2]


# One without an official split, one with few pictures in its pool, one with strong text.
THREE = ("DTD", "Flowers102", "Pets")


@pytest.mark.parametrize(
    ("datasets", "least"),
    [pytest.param(THREE, 200, id="three datasets"), pytest.param((), 860, id="whole", marks=pytest.mark.slow)],
)
def test_the_paper_is_rehearsed(tmp_path, datasets, least):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "rehearse.py"), str(tmp_path), *datasets],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "SIMULATED" in said
    with (tmp_path / "records" / "published.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    answered = [line for line in lines if line["verdict"] != "not computed"]
    assert len(lines) == 917
    assert len(answered) >= least
    assert all(line["why"] for line in lines if line["verdict"] == "not computed")
    assert all(line["ours"] for line in answered)
    reports = tmp_path / "records" / "reports"
    page = (reports / "paper" / "report.html").read_text(encoding="utf-8")
    assert "Beside the published" in page
    assert "Probes, pooled over the strata" in page
    assert "SIMULATED" in page
    arm = (reports / "augmentation" / "tables" / "augmentation.csv").read_text("utf-8")
    assert "clap × 20" in arm
    assert "clap × 10" in arm
    assert (reports / "paper" / "figures" / "offset_and_per_class.pdf").is_file()
