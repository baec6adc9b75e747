"""SIGKILL for workers and drivers of every engine, at random moments, and the same records in the end."""

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from engines.conftest import KSHOT
from engines.slurm_node import SlurmNode, available
from folders import comparable
from kshot.bench.check import check_records
from kshot.bench.record import schema
from kshot.bench.records import Records
from kshot.bench.status import run_status
from kshot.files import read_tables
from processes import in_this_folder, kill, spawned_workers, wait_until
from steady_study import cells_of

pytestmark = pytest.mark.ci

SEEDS_OF_A_ROUND = 15
ENGINES = ["local", "dask", "slurm"] if available() else ["local", "dask"]


def _drivers() -> list[int]:
    """Wherever an engine put them."""
    return [
        process.pid
        for process in in_this_folder()
        if all(word in process.command for word in ("kshot run ", "steady.toml", "stormy"))
    ]


def _workers() -> list[int]:
    drivers = _drivers()
    return [process.pid for process in spawned_workers() if process.parent in drivers]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_kills_among_two_drivers_and_a_compaction(steady, kshot, tmp_path, engine):
    """Two drivers fill a folder while its files are joined, and anyone may be killed at any moment. Each folder that
    is full is compared, and the next one begun."""
    wanted = int(os.environ.get("KSHOT_KILLS", "300")) // len(ENGINES)
    steady(seeds=SEEDS_OF_A_ROUND, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm").returncode == 0
    steady(seeds=SEEDS_OF_A_ROUND, seconds=0.1)
    kills, rounds, rng = Counter(), 0, random.Random(engine)
    (tmp_path / "slurm").mkdir()
    node = SlurmNode(tmp_path / "slurm") if engine == "slurm" else None
    with node or nullcontext(), Path("said.log").open("w") as log:
        while kills.total() < wanted:
            folder = Path(f"stormy-{rounds}")
            start = _by_slurm(kshot, node, folder) if node else _by_hand(engine, folder, log)
            _fill_among_kills(folder, start, log, rng, kills, wanted)
            assert kshot("records", "compact", folder).returncode == 0
            assert comparable(folder).equals(comparable("calm"))
            loose, joined = Records(folder).files()
            assert read_tables([*loose, *joined], schema()).num_rows == 3 * cells_of(SEEDS_OF_A_ROUND), (
                "a record lies twice, or is lost"
            )
            assert all(finding.passed for finding in check_records(folder))
            rounds += 1
            print(f"{engine}: {folder} holds every record once, after {kills.total()} kills", flush=True)
    said = "".join(path.read_text() for path in (Path("said.log"), *Path().glob("kshot-steady-*.log")))
    assert "Traceback" not in said
    print(f"{engine}: {dict(kills)} while {rounds} folders were filled")


def _by_hand(engine: str, folder: Path, log) -> Callable[[], Callable[[], bool]]:
    """Starts a driver; its answer tells whether that one is still going on."""
    options = ["--records", str(folder), "--workers", "1", "--engine", engine]

    def start() -> Callable[[], bool]:
        run = subprocess.Popen([*KSHOT, "run", "steady.toml", *options], stdout=log, stderr=log)
        return lambda: run.poll() is None

    return start


def _by_slurm(kshot, node: SlurmNode, folder: Path) -> Callable[[], Callable[[], bool]]:
    # A job would else write over what the one before it said.
    node.environment["SBATCH_OPEN_MODE"] = "append"
    script = Path(f"{folder}.sh").resolve()
    script.write_text(kshot("slurm", "steady.toml", "--records", folder, "--shards", 1, "--cpus", 1).stdout)

    def start() -> Callable[[], bool]:
        job = node.submit(script)
        return lambda: node.active(job)

    return start


def _fill_among_kills(folder: Path, start, log, rng: random.Random, kills: Counter, wanted: int) -> None:
    """Runs until the folder holds every cell; nobody is killed before something was done since the last time, and
    nobody beyond the wanted number."""
    drivers, joining = [start(), start()], _joining(folder, log)
    try:
        while _lacks_cells(folder):
            drivers = [going if going() else start() for going in drivers]
            if not _changes(folder) or kills.total() >= wanted:
                continue
            kind = rng.choice(["driver", "worker", "worker", "compaction"])
            if kind == "compaction":
                _wait_for_lock(joining)
            time.sleep(rng.uniform(0, 0.3))
            alive = [joining.pid] if joining.poll() is None else []
            victims = {"driver": _drivers(), "worker": _workers(), "compaction": alive}[kind]
            if victims:
                kills[kind] += kill(rng.choice(victims))
            joining = joining if joining.poll() is None else _joining(folder, log)
        wait_until(lambda: not any(going() for going in drivers), "a driver does not see that all is done")
    finally:
        joining.wait()
        for driver in _drivers():
            kill(driver)
    wait_until(lambda: not spawned_workers(), "workers outlived their drivers")


def _joining(folder: Path, log) -> subprocess.Popen:
    return subprocess.Popen([*KSHOT, "records", "compact", str(folder)], stdout=log, stderr=log)


def _wait_for_lock(process: subprocess.Popen) -> None:
    """Until it begins to change files, or has nothing to change."""

    def holds() -> bool:
        lines = Path("/proc/locks").read_text().splitlines()
        return str(process.pid) in [word for line in lines for word in line.split()[4:5]]

    wait_until(lambda: holds() or process.poll() is not None, "nothing is joined")


def _changes(folder: Path, seconds: float = 2) -> bool:
    """Whether a file of records comes or goes meanwhile."""

    def files() -> set[Path]:
        return set(folder.rglob("*.parquet"))

    before, end = files(), time.monotonic() + seconds
    while files() == before:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _lacks_cells(folder: Path) -> bool:
    return not (folder / "study.json").is_file() or run_status(folder).missing > 0
