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
from folders import comparable, fits, stamps
from kshot.bench.check import check_records
from kshot.bench.record import schema
from kshot.bench.records import Records
from kshot.bench.status import run_status
from kshot.files import read_tables
from processes import in_this_folder, kill, spawned_workers, wait_until
from steady_study import cells_of

WORKERS = 2
SEEDS_OF_A_ROUND = 15
ENGINES = ["local", "dask", "slurm"] if available() else ["local", "dask"]


class Storm:
    """Starts runs of one study on an engine and kills their processes."""

    def __init__(self, seed: int, node: SlurmNode | None):
        self.rng = random.Random(seed)
        self.node = node
        self.kills = 0

    def session(self, engine: str) -> None:
        """One run: workers die while it goes on, and in the end its drivers."""
        running = self._start(engine)
        wait_until(lambda: _workers() or not running(), "no worker started")
        before = self.kills
        for _ in range(self.rng.randint(1, 4)):
            time.sleep(self.rng.uniform(0.1, 1.0))
            victims = _drivers() if self.rng.random() < 0.3 else _workers()
            if victims:
                self.kills += kill(self.rng.choice(victims))
        wait_until(lambda: not self._cut_short(running), "the run outlived its drivers", 300)
        assert self.kills > before, "the run ended by itself"
        wait_until(lambda: not spawned_workers(), "workers outlived their drivers")

    def _cut_short(self, running: Callable[[], bool]) -> bool:
        """Kills the drivers of a run that is still going on, and tells whether it was."""
        if not running():
            return False
        self.kills += sum(map(kill, _drivers()))
        return True

    def _start(self, engine: str) -> Callable[[], bool]:
        """Starts a run; the answer tells whether it is still going on."""
        if engine == "slurm":
            assert self.node is not None
            node, job = self.node, self.node.submit(Path("job.sh").resolve())
            return lambda: node.active(job)
        options = ["--records", "stormy", "--workers", str(WORKERS), "--engine", engine]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.Popen([*KSHOT, "run", "steady.toml", *options], **quiet)
        return lambda: run.poll() is None


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


def _survive(steady, kshot, tmp_path, seeds: int, seconds: float, kills: int) -> None:
    steady(seeds=seeds, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm").returncode == 0
    Path("fits.log").unlink()
    steady(seeds=seeds, seconds=seconds)
    cells = cells_of(seeds)
    Path("job.sh").write_text(kshot("slurm", "steady.toml", "--records", "stormy", "--shards", 2, "--cpus", 1).stdout)
    (tmp_path / "slurm").mkdir()
    node = SlurmNode(tmp_path / "slurm") if "slurm" in ENGINES else None
    with node or nullcontext():
        storm = Storm(7, node)
        written: dict = {}
        turn = 0
        try:
            while storm.kills < kills:
                storm.session(ENGINES[turn % len(ENGINES)])
                now = stamps("stormy")
                assert {path: now[path] for path in written} == written, "a finished cell was written again"
                assert len(now) < cells, "the study ended before the storm; make its cells slower"
                written = now
                turn += 1
        finally:
            for driver in _drivers():
                kill(driver)
    steady(seeds=seeds, seconds=0)
    done = kshot("run", "steady.toml", "--records", "stormy", "--workers", WORKERS)
    assert done.returncode == 0, done.stderr
    assert comparable("stormy").num_rows == 3 * cells
    assert comparable("stormy").equals(comparable("calm"))
    assert not list(Path("stormy").rglob(".tmp-*"))
    assert cells <= fits() <= cells + storm.kills * WORKERS


@pytest.mark.slow
def test_a_dozen_kills(steady, kshot, tmp_path):
    _survive(steady, kshot, tmp_path, seeds=40, seconds=0.4, kills=12)


@pytest.mark.slow
def test_two_hundred_kills_over_fifteen_hundred_cells(steady, kshot, tmp_path):
    _survive(steady, kshot, tmp_path, seeds=250, seconds=0.4, kills=200)


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
