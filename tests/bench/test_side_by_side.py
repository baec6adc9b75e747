"""Processes that meet in one folder, and what killed ones left there."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kshot.bench.compact import compact
from kshot.bench.engines.local import LocalEngine
from kshot.bench.work import finished_cells

from folders import comparable, edit
from kshot.bench.cell import run_batch
from kshot.bench.records import Records, load_table
from kshot.bench.run import compute, open_run
from kshot.bench.study import load_study
from kshot.data.simulated import BACKBONE, TIER, WORLDS, write
from kshot.data.store import Store
from kshot.errors import FeatureError, KshotError
from kshot.files import TEMPORARY_PREFIX, place_of, write_table

pytestmark = pytest.mark.ci

DRIVERS = 3
SLOW_ON_SATELLITE = """
import time
from kshot import NCM

class Slow(NCM):
    def _fit(self, task):
        time.sleep(600 if task.n_classes == 10 else 0)
        super()._fit(task)
"""
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
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(DRIVERS)
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
        for number in range(100):
            list(drivers.map(claim, [Records(folder / f"records{number}")] * DRIVERS))


def test_a_start_that_was_killed_does_not_occupy_the_folder(folder):
    torn(folder / "records" / f"{TORN}.json")
    records = run(folder)
    assert finished_cells(records) == set(records.study().cells())


def test_a_world_of_which_a_part_is_lacking_is_written_again(folder):
    before = comparable(run(folder).folder)
    store = Store(folder / "features")
    for part in ("test", f"text-{TIER}"):
        store.path("sim-pets", BACKBONE, part).with_suffix(".json").unlink()
        (folder / "records").rename(folder / f"before-{part}")
        assert comparable(run(folder).folder).equals(before)


def test_files_in_the_making_are_nobody_elses(folder):
    records = run(folder)
    before = load_table(records.folder)
    others = [
        torn(records.folder / "compact" / f"{TORN}.parquet"),
        torn(records.folder / "runs" / f"{TORN}.json"),
        torn(folder / "features" / "sim-pets" / BACKBONE / f"{TORN}.json"),
    ]
    assert compact(records) == 12
    assert load_table(records.folder).equals(before)
    for command in (["status", "records"], ["records", "diff", "records", "records"], ["ls", "features"]):
        done = subprocess.run([sys.executable, "-m", "kshot", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert all(path.exists() for path in others)


def test_a_finished_run_leaves_no_process_behind(folder):
    run(folder)
    assert not multiprocessing.active_children()


def test_a_worker_that_outlives_a_run_reads_features_that_were_written_again(folder):
    """As workers of a cluster do: two runs in one process."""
    store, study = Store(folder / "features"), load_study("small.toml")

    def accuracies(name: str) -> dict:
        records = Records(folder / name)
        for batch in open_run(study, store.root, records).batches():
            run_batch(study, store.root, records, batch)
        means = load_table(records.folder).group_by(["dataset", "method"]).aggregate([("accuracy", "mean")])
        return {(row["dataset"], row["method"]): row["accuracy_mean"] for row in means.to_pylist()}

    before = accuracies("before")
    pets = store.text("sim-pets", BACKBONE, TIER)
    turned = np.roll(pets.prototypes, 1, axis=0)
    about = {"simulated": True, "logit_scale": 100.0}
    store.write_text("sim-pets", BACKBONE, TIER, turned, pets.norms, pets.manifest.classes, **about)
    after = accuracies("after")
    assert after["sim-pets", "zero_shot"] < 0.1 < before["sim-pets", "zero_shot"]
    assert after["sim-satellite", "zero_shot"] == before["sim-satellite", "zero_shot"]


def test_features_written_again_during_a_run_are_refused(folder):
    store, study, records = Store(folder / "features"), load_study("small.toml"), Records(folder / "records")
    [batch, *_] = open_run(study, store.root, records).batches()
    other = replace(WORLDS[batch.cells[0].dataset], between=0.1)
    write(other, store)
    with pytest.raises(FeatureError, match="was written again after this run had begun"):
        run_batch(study, store.root, records, batch)
    assert not records.loose()


def test_joining_leaves_what_was_written_meanwhile(folder, monkeypatch):
    """Another driver computes one of the cells anew while we are still reading."""
    records = run(folder)
    [path, *_] = records.loose()
    other = pq.ParquetFile(path).read()
    other = other.set_column(other.schema.get_field_index("fit_seconds"), "fit_seconds", pa.array([1.0] * len(other)))

    def load_slowly(where):
        table = load_table(where)
        write_table(other, records.folder, place_of(records.folder, path))
        return table

    monkeypatch.setattr("kshot.bench.compact.load_table", load_slowly)
    compact(records)
    [left] = records.loose()
    assert place_of(records.folder, left) == place_of(records.folder, path)


def test_an_error_ends_the_workers_at_once(folder, monkeypatch):
    (folder / "slow.py").write_text(SLOW_ON_SATELLITE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)
    edit("small.toml", '"ncm"', '"slow:Slow"')
    records = Records(folder / "records")
    work = open_run(load_study("small.toml"), folder / "features", records)
    (folder / "records" / "cells").mkdir()
    (folder / "records" / "cells" / "sim-pets").write_text("a file where a folder must be")
    with pytest.raises(KshotError, match="cannot write"):
        compute(work, folder / "features", records, LocalEngine(4))
    assert not multiprocessing.active_children()
    assert not records.loose()
