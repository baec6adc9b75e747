"""Surroundings that fail: each ends in a clear message and a folder from which `kshot run` continues."""

import shutil
import subprocess
from pathlib import Path

import pytest

from folders import comparable, stamps

pytestmark = pytest.mark.ci


@pytest.fixture
def calm(steady, kshot):
    steady(seeds=4, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm").returncode == 0
    return comparable("calm")


def half_done(kshot) -> None:
    """A records folder in which every second cell is missing."""
    shutil.copytree("calm", "half")
    for path in sorted(Path("half").rglob("K*.parquet"))[::2]:
        path.unlink()


def continues(kshot, calm) -> None:
    before = stamps("half")
    done = kshot("run", "steady.toml", "--records", "half")
    assert done.returncode == 0, done.stderr
    assert comparable("half").equals(calm)
    assert {path: stamps("half")[path] for path in before} == before


def test_torn_temporary_files(kshot, calm):
    half_done(kshot)
    dead = subprocess.Popen(["true"])
    dead.wait()
    host = subprocess.run(["hostname"], capture_output=True, text=True).stdout.strip()
    prefix = ".tmp-" + "".join(c for c in host if c.isalnum())
    torn = Path("half/cells/sim-pets/simulated/dataset", f"{prefix}-{dead.pid}-abc.parquet")
    foreign = torn.with_name(".tmp-elsewhere-1-abc.parquet")
    torn.write_bytes(b"PAR1 half a fi")
    foreign.write_bytes(b"PAR1")
    continues(kshot, calm)
    assert not torn.exists()
    assert foreign.exists(), "another machine may still be writing it"


@pytest.fixture
def disk(tmp_path):
    """A file system of our own that can be filled or made read-only."""
    folder = tmp_path / "half"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("this machine does not let us mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_records_folder_made_read_only(kshot, calm, disk):
    shutil.copytree("calm", "half", dirs_exist_ok=True)
    for path in sorted(Path("half").rglob("K*.parquet"))[::2]:
        path.unlink()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    done = kshot("run", "steady.toml", "--records", "half")
    assert done.returncode == 2
    assert "no permission to write" in done.stderr
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    continues(kshot, calm)


@pytest.mark.skipif(not shutil.which("faketime"), reason="no faketime on this machine")
def test_a_clock_that_jumps(kshot, calm, steady):
    import sys

    half_done(kshot)
    before = stamps("half")
    for jump in ("-9y", "+9y"):
        done = subprocess.run(
            ["faketime", "-f", jump, sys.executable, "-m", "kshot", "run", "steady.toml", "--records", "half"],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert comparable("half").equals(calm)
    assert {path: stamps("half")[path] for path in before} == before
