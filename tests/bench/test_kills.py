"""SIGKILL for drivers and workers at random moments: nothing that was written is lost, and the end is the same."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from folders import comparable
from kshot.bench.records import Records
from processes import kill, spawned_workers, wait_until
from steady_study import cells_of

pytestmark = pytest.mark.ci

SEEDS, KILLS = 15, int(os.environ.get("KSHOT_KILLS", "12"))
RUN = [sys.executable, "-m", "kshot", "run", "steady.toml", "--workers", "2", "--records"]


def start(folder) -> subprocess.Popen:
    return subprocess.Popen([*RUN, str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_kills_among_two_drivers(steady):
    steady(seeds=SEEDS, seconds=0)
    assert start("calm").wait() == 0
    steady(seeds=SEEDS, seconds=0.1)
    rng, kills, rounds = random.Random(0), 0, 0
    while kills < KILLS:
        records = Records(Path(f"stormy-{rounds}"))
        drivers, seen = [start(records.folder), start(records.folder)], set()
        while len(seen) < 3 * cells_of(SEEDS):
            time.sleep(rng.uniform(0, 0.5))
            now = records.keys()
            assert seen <= now, "what was written is lost"
            if now != seen and kills < KILLS:
                victims = [driver.pid for driver in drivers if driver.poll() is None]
                victims += [worker.pid for worker in spawned_workers()]
                kills += bool(victims) and kill(rng.choice(victims))
            seen = now
            drivers = [one if one.poll() is None else start(records.folder) for one in drivers]
        for driver in drivers:
            driver.wait()
        assert comparable(records.folder).equals(comparable("calm"))
        rounds += 1
    # Those that were killed before their first task end by the time-out of loky.
    wait_until(lambda: not spawned_workers(), "workers outlived their drivers", seconds=330)


def test_workers_end_with_their_driver(steady):
    steady(seeds=2, seconds=600)
    driver = start(Path("records"))
    wait_until(lambda: Path("fits.log").exists() and len(spawned_workers()) == 2, "no worker is at work")
    kill(driver.pid)
    driver.wait()
    wait_until(lambda: not spawned_workers(), "workers outlived their driver", seconds=20)
