"""SIGKILL for workers and drivers of every engine, at random moments, and the same records in the end."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from engines.conftest import KSHOT
from engines.slurm_node import SlurmNode, available
from folders import comparable, fits, stamps

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
        deadline = time.monotonic() + 60
        while not _processes()[1] and running() and time.monotonic() < deadline:
            time.sleep(0.1)
        for _ in range(self.rng.randint(1, 4)):
            time.sleep(self.rng.uniform(0.1, 1.0))
            drivers, workers = _processes()
            victims = drivers if self.rng.random() < 0.3 else workers
            if victims:
                self._kill(self.rng.choice(victims))
        while running():
            for driver in _processes()[0]:
                self._kill(driver)
            time.sleep(0.1)

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

    def _kill(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
            self.kills += 1
        except ProcessLookupError:
            pass


def _processes() -> tuple[list[int], list[int]]:
    """Drivers and workers of the stormy runs, wherever an engine put them."""
    listing = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True).stdout
    rows = [
        (int(pid), int(ppid), args)
        for pid, ppid, args in (line.split(None, 2) for line in listing.splitlines())
    ]
    drivers = [
        pid for pid, _, args in rows if "kshot run " in args and "steady.toml" in args and "stormy" in args
    ]
    workers = [pid for pid, ppid, args in rows if ppid in drivers and "spawn_main" in args]
    return drivers, workers


def _survive(steady, kshot, tmp_path, seeds: int, seconds: float, kills: int) -> None:
    steady(seeds=seeds, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm").returncode == 0
    Path("fits.log").unlink()
    steady(seeds=seeds, seconds=seconds)
    cells = 2 * 3 * seeds
    Path("job.sh").write_text(
        kshot("slurm", "steady.toml", "--records", "stormy", "--shards", 2, "--cpus", 1).stdout
    )
    (tmp_path / "slurm").mkdir()
    node = SlurmNode(tmp_path / "slurm") if "slurm" in ENGINES else None
    with node or nullcontext():
        storm = Storm(7, node)
        written: dict = {}
        turn = 0
        while storm.kills < kills:
            storm.session(ENGINES[turn % len(ENGINES)])
            now = stamps("stormy")
            assert {path: now[path] for path in written} == written, "a finished cell was written again"
            assert len(now) < cells, "the study ended before the storm; make its cells slower"
            written = now
            turn += 1
    steady(seeds=seeds, seconds=0)
    done = kshot("run", "steady.toml", "--records", "stormy", "--workers", WORKERS)
    assert done.returncode == 0, done.stderr
    assert comparable("stormy").num_rows == 3 * cells
    assert comparable("stormy").equals(comparable("calm"))
    assert not list(Path("stormy").rglob(".tmp-*"))
    assert cells <= fits() <= cells + storm.kills * WORKERS


def test_a_dozen_kills(steady, kshot, tmp_path):
    _survive(steady, kshot, tmp_path, seeds=40, seconds=0.4, kills=12)


@pytest.mark.slow
def test_two_hundred_kills_over_fifteen_hundred_cells(steady, kshot, tmp_path):
    _survive(steady, kshot, tmp_path, seeds=250, seconds=0.4, kills=200)
