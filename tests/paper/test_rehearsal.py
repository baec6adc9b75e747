"""From nothing to report and comparison, on generated features under the paper's names."""

import csv
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from kshot.data.store import Store
from kshot.paper.claims import paper_claims
from kshot.paper.folders import compare_folders
from kshot.paper.rehearsal import WORLDS, write_stratum
from kshot.runs import run

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


SMALL = """
name = "paper"
datasets = ["DTD", "EuroSAT", "Pets"]
backbones = ["RN50", "ViT-B-16"]
tiers = ["dataset", "photo"]
shots = [1, 2, 4]
seeds = {seeds}
methods = ["zero_shot", "ncm", "js_blend", "loo_blend", "gda_alpha1", "oracle_lambda"]
"""


def test_a_simulated_run_is_the_same_on_other_draws_and_not_with_another_dataset(tmp_path):
    for name, backbone in product(("DTD", "EuroSAT", "Pets"), ("RN50", "ViT-B-16")):
        world = WORLDS[name]
        write_stratum(Store(tmp_path / "features"), world, backbone)
        weaker = replace(world, text_error=2 * world.text_error) if name == "DTD" else world
        write_stratum(Store(tmp_path / "other"), weaker, backbone)
    for folder, features, seeds in (
        ("a", "features", [0, 1, 2]),
        ("b", "features", [3, 4, 5]),
        ("c", "other", [3, 4, 5]),
    ):
        (tmp_path / "paper.toml").write_text(SMALL.format(seeds=seeds))
        run(tmp_path / "paper.toml", features=tmp_path / features, records=tmp_path / folder, workers=1)
    claims = paper_claims()
    same = compare_folders(tmp_path / "a", claims, tmp_path / "b")
    assert (same.same, same.signs, same.simulated) == (True, [], True)
    other = compare_folders(tmp_path / "a", claims, tmp_path / "c")
    assert not other.same
    assert "DTD" in str(other.places[0].place)
