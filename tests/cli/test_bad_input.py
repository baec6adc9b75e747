"""Bad input gets one clear message, exit code 2 and no half-written file."""

import shutil
import subprocess
from pathlib import Path

import pytest

from folders import assert_refused, edit
from kshot.bench.records import Records

pytestmark = pytest.mark.ci


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sim-satellite", "sim-sattelite", ["'sim-sattelite/simulated'", "Did you mean sim-satellite/simulated"]),
        ('"simulated"', '"ViT-B-99"', ["'sim-satellite/ViT-B-99'"]),
        ('tiers = ["dataset"]', 'tiers = ["datset"]', ["unknown tier 'datset'", "Did you mean dataset"]),
        ('"ncm"', '"nmc"', ["unknown method 'nmc'", "Did you mean ncm"]),
        ("shots = [1, 2]", "shots = []", ["'shots' must be a list"]),
        ("name", "nmae", ["unknown key 'nmae'", "Did you mean name"]),
    ],
)
def test_unknown_names_in_a_study(kshot, old, new, words):
    edit("tiny.toml", old, new)
    assert_refused(kshot("run", "tiny.toml", *(["--plan"] if "shots" in old else [])), *words)
    assert not Path("records").exists()


def test_a_run_says_which_module_is_absent_and_a_plan_imports_nothing_of_a_study_file(kshot):
    edit("tiny.toml", '"ncm"', '"nowhere:Class"')
    assert_refused(kshot("run", "tiny.toml"), "cannot import 'nowhere'")
    Path("nowhere.py").write_text("open('ran', 'w').close()")
    planned = kshot("run", "tiny.toml", "--plan")
    assert planned.returncode == 0, planned.stderr
    assert "not imported and not counted: nowhere:Class" in planned.stdout
    assert not Path("ran").exists()
    assert_refused(kshot("run", "tiny.toml", "--plan", "--method", "nowhere:Class"), "has no class 'Class'")


def test_missing_study_and_records(kshot):
    assert_refused(kshot("run", "absent.toml"), "unknown study file 'absent.toml'")
    assert_refused(kshot("status", "nowhere"), "no folder of records at records", "kshot run")
    assert_refused(kshot("report", "tiny.toml"), "no folder of records at records", "kshot run")
    assert_refused(kshot("ls", "Flwers102"), "Did you mean Flowers102")
    assert_refused(kshot("records", "probe"), "--on DATASET/BACKBONE/TIER")


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_damaged_features_stop_a_run_and_cost_no_record(ran, damage):
    finished = {path: path.read_bytes() for path in Path("records").rglob("*.parquet")}
    path = Path("features/sim-satellite/simulated/pool.safetensors")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    shutil.move("records", "old")
    done = ran("run", "tiny.toml")
    assert_refused(done, str(path), "is damaged", "sha256")
    assert not list(Path("records").rglob(".tmp-*"))
    assert {Path("old", *p.parts[1:]).read_bytes() for p in finished} == set(finished.values())


@pytest.fixture
def small_disk(tmp_path_factory):
    """A real file system of 300 kB."""
    folder = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_said_and_the_run_continues_elsewhere(kshot, small_disk):
    edit("tiny.toml", "seeds = [0]", f"seeds = {list(range(20))}")
    done = kshot("run", "tiny.toml", "--records", str(small_disk / "records"))
    assert_refused(done, "the disk is full", "run the same command again")
    assert not list(small_disk.rglob(".tmp-*"))
    kept = len(Records(small_disk / "records").keys())
    assert 0 < kept < 120
    shutil.copytree(small_disk / "records", "records")
    more = kshot("run", "tiny.toml")
    assert more.returncode == 0, more.stderr
    assert f"{kept} records there, {120 - kept} to compute" in more.stdout


def test_a_full_disk_while_simulating(kshot, small_disk):
    done = kshot("features", "simulate", "--features", str(small_disk / "features"))
    assert_refused(done, "the disk is full")
    assert not list(small_disk.rglob(".tmp-*"))


def test_a_read_only_folder(kshot):
    """Root may write anywhere, so the folder is a file: the other way to be unwritable."""
    Path("records").write_text("")
    assert_refused(kshot("run", "tiny.toml"), "cannot write records")
