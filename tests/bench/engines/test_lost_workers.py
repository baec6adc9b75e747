"""Workers that die: a run goes on as long as cells get done, and ends in a sentence when none does."""

import subprocess
import sys
from pathlib import Path

import pytest

import folders
from engines.conftest import KSHOT
from kshot.bench.engines import TURNS_WITHOUT_PROGRESS
from processes import kill, spawned_workers, wait_until
from steady_study import cells_of

pytestmark = pytest.mark.ci

# Takes its process along in every cell that it has not met yet.
MORTAL = """
import hashlib, os, signal
from pathlib import Path
from kshot.methods.ncm import NCM

class Steady(NCM):
    def _fit(self, task):
        met = Path("met", hashlib.sha256(task.means.tobytes()).hexdigest())
        if {condition}:
            met.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        super()._fit(task)
"""
ONCE_A_CELL, ONCE, ALWAYS = "not met.exists()", "not any(met.parent.iterdir())", "True"
# dask gives up a worker before its successor can have started, as it does by itself on a busy machine.
IMPATIENT = """
from kshot import run
from kshot.bench.engines import dask

dask.CONFIG["distributed.deploy.lost-worker-timeout"] = "1 ms"
dask.SECONDS_BETWEEN_LOOKS = 2
run("steady.toml", records="other", workers=1, engine="dask")
"""


def comparable(folder):
    """The records, whatever the version of `steady.py` that made them."""
    return folders.comparable(folder).drop_columns(["code"])


@pytest.fixture
def calm(steady, kshot):
    steady(seeds=1, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm", "--workers", 1).returncode == 0
    Path("met").mkdir()
    return comparable("calm")


@pytest.mark.parametrize("engine", ["local", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_worker_lost_in_every_cell_ends_no_run(calm, kshot, engine):
    assert cells_of(1) > TURNS_WITHOUT_PROGRESS
    Path("steady.py").write_text(MORTAL.format(condition=ONCE_A_CELL))
    done = kshot("run", "steady.toml", "--records", "other", "--workers", 2, "--engine", engine)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(Path("met").iterdir())) == cells_of(1)
    assert comparable("other").equals(calm)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "words"), [("local", "workers keep dying"), ("dask", "the cluster lost")])
def test_workers_that_only_die_end_it_in_a_sentence(calm, kshot, engine, words):
    Path("steady.py").write_text(MORTAL.format(condition=ALWAYS))
    done = kshot("run", "steady.toml", "--records", "other", "--workers", 2, "--engine", engine)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_dask_worker_killed_at_its_start(calm):
    options = ["--records", "other", "--workers", "1", "--engine", "dask"]
    run = subprocess.Popen([*KSHOT, "run", "steady.toml", *options], stderr=subprocess.PIPE, text=True)
    wait_until(spawned_workers, "no worker started")
    assert kill(spawned_workers()[0].pid)
    _, said = run.communicate()
    assert "Traceback" not in said
    if run.returncode == 2:
        assert "the dask cluster did not start" in said
    else:
        assert run.returncode == 0, said
        assert comparable("other").equals(calm)


@pytest.mark.slow
def test_a_cluster_that_has_no_worker_left_is_started_again(calm):
    Path("steady.py").write_text(MORTAL.format(condition=ONCE))
    done = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert comparable("other").equals(calm)
