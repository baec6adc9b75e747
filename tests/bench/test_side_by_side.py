"""Processes that meet in one folder, and what killed ones left there."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from folders import comparable
from kshot.bench.compact import compact
from kshot.bench.engines.local import LocalEngine
from kshot.bench.records import Records, load
from kshot.bench.run import compute, open_run
from kshot.bench.study import load_study
from kshot.features.simulate import BACKBONE, TIER
from kshot.features.store import Store
from kshot.files import TEMPORARY_PREFIX

DRIVERS = 3
TORN = f"{TEMPORARY_PREFIX}elsewhere-1-abc"


def run(folder: Path) -> Records:
    records = Records(folder / "records")
    compute(open_run(load_study("small.toml"), folder / "features", records), folder / "features", records,
            LocalEngine(2))  # fmt: skip
    return records


def torn(path: Path) -> Path:
    """What a process that was killed while writing leaves, or a living one has not finished."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half a fi")
    return path


def test_drivers_meet_in_an_empty_folder(folder):
    command = [sys.executable, "-m", "kshot", "run", "small.toml", "--records", "met", "--workers", "1"]
    drivers = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(DRIVERS)
    ]
    said = [driver.communicate()[1] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0] * DRIVERS, said
    assert said == [""] * DRIVERS
    assert comparable("met").equals(comparable(run(folder).folder))


def test_a_folder_can_be_claimed_by_many_at_once(folder):
    study = load_study("small.toml")
    together = Barrier(DRIVERS)

    def claim(records: Records) -> None:
        together.wait()
        records.claim(study, [], {})

    with ThreadPoolExecutor(DRIVERS) as drivers:
        for number in range(300):
            list(drivers.map(claim, [Records(folder / f"records{number}")] * DRIVERS))


def test_a_start_that_was_killed_does_not_occupy_the_folder(folder):
    torn(folder / "records" / f"{TORN}.json")
    records = run(folder)
    assert records.done() == set(records.study().cells())


def test_a_world_of_which_a_part_is_lacking_is_written_again(folder):
    before = comparable(run(folder).folder)
    store = Store(folder / "features")
    for part in ("test", f"text-{TIER}"):
        store.path("sim-pets", BACKBONE, part).with_suffix(".json").unlink()
        (folder / "records").rename(folder / f"before-{part}")
        assert comparable(run(folder).folder).equals(before)


def test_files_in_the_making_are_nobody_elses(folder):
    records = run(folder)
    before = load(records.folder)
    others = [
        torn(records.folder / "compact" / f"{TORN}.parquet"),
        torn(records.folder / "runs" / f"{TORN}.json"),
        torn(folder / "features" / "sim-pets" / BACKBONE / f"{TORN}.json"),
    ]
    assert compact(records) == 12
    assert load(records.folder).equals(before)
    for command in (["status", "records"], ["diff", "records", "records"], ["ls", "features"]):
        done = subprocess.run([sys.executable, "-m", "kshot", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert all(path.exists() for path in others)


def test_a_finished_run_leaves_no_process_behind(folder):
    run(folder)
    assert not multiprocessing.active_children()
