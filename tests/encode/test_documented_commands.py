"""The commands of docs/real-features.md that need a hub and a GPU, word for word against stand-ins for both."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kshot.bench.study import find_study
from kshot.data.catalog import datasets
from kshot.data.store import Store
from picture_sets import write_pictures, write_shards

pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "real-features.md").read_text()
THREE, OWN, OTHER = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def kshot(line: str, folder: Path, *more: str, **variables: str) -> str:
    words = shlex.split(line)
    assert words[0] == "kshot"
    command = [sys.executable, "-m", *words, *more]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_three_commands_to_the_studys_ten_datasets(tiny_clip, serve, tmp_path, monkeypatch):
    encode, check, run = THREE.strip().splitlines()
    ten = {name: entry for name, entry in datasets().items() if entry.wds}
    assert len(ten) == 10
    for entry in ten.values():
        splits = {"test": 1} if entry.split == "self" else {"train": 1, "test": 1}
        name = f"wds_{entry.wds.replace('/', '-')}"
        write_shards(tmp_path / "hub/datasets/clip-benchmark" / name / "resolve/main", splits)
    monkeypatch.setenv("HF_ENDPOINT", serve(tmp_path / "hub").url)
    assert "--device cuda" in encode
    out = kshot(encode.replace("--device cuda", "--device cpu"), tmp_path, "--weights", str(tiny_clip))
    assert out.startswith("0\n"), out
    store = Store(tmp_path / "features")
    for name, entry in ten.items():
        parts = ("all",) if entry.split == "self" else ("pool", "test")
        assert all(store.has(name, "ViT-B-16", part) for part in parts)
        assert store.tiers(name, "ViT-B-16") == ["dataset", "ensemble", "photo"]
    checked = kshot(check, tmp_path)
    assert "FAIL Pets/ViT-B-16: pool names 3 classes, published 37" in checked  # stand-ins are not the pets
    # A file of the folder comes before the package's study of that name; the stand-ins have one shot and no more.
    study = find_study("ten-datasets").read_text().replace("[1, 2, 4, 8, 16]", "[1]")
    (tmp_path / "ten-datasets").write_text(study)
    ran = kshot(f"{run} --min-residue 0", tmp_path)
    assert ran.startswith("0\n"), ran
    assert "50 cells" in ran


@pytest.mark.parametrize(("command", "backbone"), [(OWN, "lite0"), (OTHER, "lite0-kernel")])
@pytest.mark.slow
def test_own_pictures(tmp_path, command, backbone):
    write_pictures(tmp_path / "my-pictures", 2, ("cat", "dog"))
    out = kshot(command.strip(), tmp_path)
    assert out.startswith("0\n"), out
    assert Store(tmp_path / "features").text("my-pictures", backbone, "photo").prototypes.shape == (2, 1280)
