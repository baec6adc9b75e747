"""SIGKILL for workers and drivers of every engine, at random moments, and the same records in the end."""

import os
import random
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from engines.conftest import KSHOT
from engines.slurm_node import SlurmNode, available
from folders import comparable, fits, stamps
from processes import in_this_folder, kill, spawned_workers, wait_until
from steady_study import cells_of

WORKERS = 2
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
    Path("job.sh").write_text(
        kshot("slurm", "steady.toml", "--records", "stormy", "--shards", 2, "--cpus", 1).stdout
    )
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
def test_kills_among_two_drivers_and_a_compaction(steady, kshot):
    """Two runs of one folder at once, its files being joined meanwhile, and anyone may be killed at any moment."""
    kills_wanted = int(os.environ.get("KSHOT_KILLS", "300"))
    seeds = max(10, kills_wanted // 3)
    steady(seeds=seeds, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm").returncode == 0
    steady(seeds=seeds, seconds=0.5)
    rng, kills, turn = random.Random(11), 0, 0
    with Path("said.log").open("w") as log:
        while kills < kills_wanted:
            engine = ("local", "dask")[turn % 2]
            options = ["--records", "stormy", "--workers", "1", "--engine", engine]
            running = [
                subprocess.Popen([*KSHOT, "run", "steady.toml", *options], stdout=log, stderr=log)
                for _ in range(2)
            ]
            wait_until(lambda: _workers() or not _drivers(), "no worker started")
            for _ in range(rng.randint(2, 6)):
                joining = subprocess.Popen([*KSHOT, "compact", "stormy"], stdout=log, stderr=log)
                time.sleep(rng.uniform(0.2, 1.5))
                victims = rng.choice(
                    [_drivers(), _workers(), [joining.pid] if joining.poll() is None else []]
                )
                if victims:
                    kills += kill(rng.choice(victims))
                joining.wait()
            kills += sum(map(kill, _drivers()))
            for run in running:
                run.wait()
            wait_until(lambda: not spawned_workers(), "workers outlived their drivers")
            turn += 1
    steady(seeds=seeds, seconds=0)
    done = kshot("run", "steady.toml", "--records", "stormy", "--workers", WORKERS)
    assert done.returncode == 0, done.stderr
    assert comparable("stormy").num_rows == 3 * cells_of(seeds)
    assert comparable("stormy").equals(comparable("calm"))
    assert kshot("check", "--records", "stormy").returncode == 0
    assert "Traceback" not in Path("said.log").read_text()
    print(f"{kills} kills in {turn} sessions")
