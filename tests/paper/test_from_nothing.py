"""`kshot paper reproduce` from an empty folder to published.csv, killed at ten random moments and started again.

A server on loopback has the ten datasets, small, in the hub's layout: one is missing, one fails the gate, and one
encoder has no weights (tests/small_paper.py).
"""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from folders import comparable
from kshot.bench.records import Records
from kshot.data.catalog import distributed
from kshot.data.store import Store
from picture_sets import Hub
from small_paper import ENCODERS, MISSING, OUTSIDE, STUDIES, write_encoders, write_hub, write_studies

pytestmark = pytest.mark.ci

KILLS = 10
SECONDS = ("fit_seconds", "score_seconds")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("world")
    encoders = write_encoders(root / "encoders")
    hub = Hub(write_hub(root / "hub", encoders["ViT-B-16"]))
    yield encoders, hub
    hub.close()


def start(world, folder: Path) -> subprocess.Popen:
    encoders, hub = world
    folder.mkdir(exist_ok=True)
    write_studies(folder)
    words = [sys.executable, "-m", "kshot", "paper", "reproduce", "--workers", "1", "--batch", "16"]
    words += [f"--study={name}" for name in STUDIES]
    words += [f"--weights={name}={encoders[name]}" for name in ENCODERS]
    own = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(folder / "cache"), "HF_HOME": str(folder / "home")}
    return subprocess.Popen(
        words,
        cwd=folder,
        env=os.environ | own | {"OMP_NUM_THREADS": "1", "MPLCONFIGDIR": str(folder.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def features(folder: Path) -> dict[str, str]:
    return {f"{m.dataset}/{m.backbone}/{m.part}": m.sha256 for m in Store(folder / "features").manifests()}


def records(folder: Path) -> dict[str, list]:
    begun = [name for name in STUDIES if Records(folder / "records").has(name)]
    return {name: comparable(folder / "records", name).to_pylist() for name in begun}


def claims(folder: Path) -> list[dict[str, str]]:
    with (folder / "records" / "published.csv").open(encoding="utf-8", newline="") as file:
        # What a head costs in seconds differs from run to run.
        return [line for line in csv.DictReader(file) if line["arm"] != "cost"]


def test_from_nothing_to_published_and_the_same_after_ten_kills(world, tmp_path):
    began = time.monotonic()
    said, _ = (whole := start(world, tmp_path / "whole")).communicate()
    took = time.monotonic() - began
    assert whole.returncode == 0, said
    here = [name for name in distributed() if name not in (MISSING, OUTSIDE)]
    assert "paper: 40 of 50 pairs computed" in said
    assert "textfree: 8 of 20 pairs computed" in said
    assert "augmentation: 40 of 50 pairs computed" in said
    assert f"not computed: {MISSING}/" in said
    assert f"not computed: {OUTSIDE}, outside its band" in said
    assert "cannot load DINOv2-B-14" in said
    biases = {(m.backbone, m.logit_bias) for m in Store(tmp_path / "whole" / "features").manifests()}
    assert ("SigLIP-B-16", -10.0) in biases
    assert ("RN50", None) in biases
    kept = features(tmp_path / "whole")
    assert {name.split("/")[0] for name in kept} == {*here, OUTSIDE}
    for name in here:
        assert {f"{name}/{encoder}/text-cupl" for encoder in ENCODERS} <= kept.keys()
    assert {row["dataset"] for row in records(tmp_path / "whole")["paper"]} == set(here)
    assert len(claims(tmp_path / "whole")) > 800
    assert not list((tmp_path / "whole" / "features").rglob("*.tar")), "shards are removed"

    chance, killed = random.Random(33), 0
    for _ in range(KILLS):
        process = start(world, tmp_path / "killed")
        try:
            said, _ = process.communicate(timeout=chance.uniform(0.04, 0.16) * took)
            assert process.returncode == 0, said
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += 1
    assert killed >= KILLS // 2, "it was done before the kills"
    last = start(world, tmp_path / "killed")
    said, _ = last.communicate()
    assert last.returncode == 0, said
    assert features(tmp_path / "killed") == kept
    assert records(tmp_path / "killed") == records(tmp_path / "whole")
    assert claims(tmp_path / "killed") == claims(tmp_path / "whole")
