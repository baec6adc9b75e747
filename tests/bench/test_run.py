"""Runs as a user starts them, with real processes."""

import random
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from folders import comparable, edit, fits, stamps
from kshot.bench.records import Records, load_table
from kshot.bench.status import run_status
from kshot.bench.study import Cell
from kshot.data.simulated import WORLDS, write
from kshot.data.store import Store
from processes import kill, spawned_workers, wait_until
from steady_study import cells_of

KSHOT = [sys.executable, "-m", "kshot"]


def kshot(*arguments, **options):
    return subprocess.run([*KSHOT, *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture
def finished(folder, computed):
    """The small study where `kshot run small.toml` keeps it."""
    shutil.copytree(computed / "features", folder / "features")
    return shutil.copytree(computed / "records", folder / "records" / "small")


def test_every_cell_and_method_is_recorded(folder):
    done = kshot("run", "small.toml", "--workers", "2")
    assert done.returncode == 0, done.stderr
    table = load_table("records/small")
    assert table.num_rows == 2 * 2 * 3 * 3
    ok = table.filter(pc.equal(table["status"], "ok")).to_pylist()
    for row in ok:
        hits = np.unpackbits(np.frombuffer(row["hits"], np.uint8))[: row["n_test"]]
        assert hits.sum() == row["n_correct"] == round(row["accuracy"] * row["n_test"])
    undefined = table.filter(pc.equal(table["status"], "undefined")).to_pylist()
    assert {(row["method"], row["shots"]) for row in undefined} == {("loo_blend", 1)}
    assert all(row["simulated"] and 0.7 < row["share"] < 0.9 for row in table.to_pylist())


def test_a_second_run_computes_nothing(finished):
    before = stamps(finished)
    assert "0 to compute" in kshot("run", "small.toml").stdout
    assert stamps(finished) == before


def test_only_what_is_missing_is_computed(finished):
    whole = comparable(finished)
    Records(finished).cell_files(Cell("sim-pets", "simulated", "dataset", 2, 1))[0].unlink()
    others = stamps(finished)
    assert "1 to compute" in kshot("run", "small.toml").stdout
    assert comparable(finished).equals(whole)
    assert {path: stamps(finished)[path] for path in others} == others


def test_worker_count_does_not_change_the_records(finished):
    kshot("run", "small.toml", "--workers", "1", "--records", "alone")
    assert comparable("alone").equals(comparable(finished))


def test_other_features_are_refused(finished):
    write(replace(WORLDS["sim-pets"], within=0.7), Store("features"))
    refused = kshot("run", "small.toml")
    assert refused.returncode == 2
    assert "computed on other features: sim-pets/simulated/pool had sha256" in refused.stderr


def test_status_counts(finished):
    found = run_status(finished)
    assert (found.total, found.done, found.missing, found.dropped) == (12, 12, 0, 0)
    assert found.methods["loo_blend"] == {"ok": 6, "undefined": 6}
    assert "needs 2 shots per class" in next(iter(found.reasons["loo_blend undefined"]))
    said = kshot("status", finished).stdout
    assert "loo_blend undefined, 6×: needs 2 shots per class" in said, "one line for datasets of any size"


def test_outsiders_method_fails_alone_and_can_be_retried(folder):
    broken = "from kshot.methods.ncm import NCM\nclass Mine(NCM):\n    def _fit(self, task):\n        "
    (folder / "mine.py").write_text(broken + "raise RuntimeError('not today')\n")
    first = kshot("run", "small.toml", "--method", "mine:Mine")
    assert first.returncode == 1
    assert "12 of mine:Mine" in first.stderr
    table = load_table("records/small")
    failed = table.filter(pc.equal(table["status"], "failed")).to_pylist()
    assert {row["method"] for row in failed} == {"mine:Mine"}
    assert failed[0]["reason"] == "RuntimeError: not today"
    tracebacks = list(Path("records/small/failures").rglob("*.txt"))
    assert len(tracebacks) == 12
    assert "mine.py" in tracebacks[0].read_text()
    assert "mine:Mine failed, 12×: RuntimeError: not today" in kshot("status", "records/small").stdout
    (folder / "mine.py").write_text(broken + "super()._fit(task)\n")
    assert "Add --method mine:Mine to the command" in kshot("run", "small.toml", "--retry").stderr
    by_folder, by_file = (_advised(kshot("status", where).stdout) for where in ("records/small", "small.toml"))
    assert by_folder == ["run", "STUDY", "--retry", "--method", "mine:Mine", "--records", "records/small"]
    assert "12 to compute" in kshot(*by_file).stdout
    table = load_table("records/small")
    mine, ncm = (table.filter(pc.equal(table["method"], name))["accuracy"] for name in ("mine:Mine", "ncm"))
    assert mine.to_pylist() == ncm.to_pylist()


def _advised(told: str) -> list[str]:
    """The command that a status ends with."""
    return told.rsplit("`kshot ", 1)[1].split("`")[0].split()


def test_thin_pools_are_dropped_and_counted(folder):
    edit("small.toml", "shots = [1, 2]", "shots = [2, 28]")  # 32 in the pool leave four
    assert "12 cells, 6 dropped (thin pool), 0 done, 6 to compute" in kshot("run", "small.toml").stdout
    assert run_status(Path("records/small")).dropped == 6
    assert "dropped  6" in kshot("plan", "small.toml").stdout


def test_progress_is_plain_lines_when_not_on_a_terminal(folder):
    out = kshot("run", "small.toml").stdout
    assert "12/12 cells" in out
    assert "\x1b" not in out
    assert "\r" not in out


@pytest.mark.parametrize("victim", ["driver", "worker"])
@pytest.mark.slow
def test_killed_at_random_moments_and_resumed(steady, victim):
    """SIGKILL whenever it hurts; the end is the same as without, and nothing finished is computed again."""
    seeds, rounds, workers = 30, 4, 2
    steady(seeds=seeds, seconds=0)
    assert kshot("run", "steady.toml", "--records", "calm").returncode == 0
    Path("fits.log").unlink()
    steady(seeds=seeds, seconds=0.4)
    rng = random.Random(4)
    written: dict = {}
    run = _start_stormy(workers)
    try:
        for turn in range(rounds):
            _wait_for_a_new_cell(run, written)
            time.sleep(rng.uniform(0, 1))
            if turn == rounds - 1:
                steady(seeds=seeds, seconds=0)  # nobody is left to kill, so the rest may be quick
            team = {process.pid for process in spawned_workers()}
            assert len(stamps("stormy")) < cells_of(seeds), "no work is left; make the cells slower"
            assert kill(run.pid if victim == "driver" else rng.choice(sorted(team)))
            _wait_until_gone(team)
            now = stamps("stormy")
            assert {path: now[path] for path in written} == written
            written = now
            if victim == "driver":
                run.wait()
                run = _start_stormy(workers)
        assert run.wait(timeout=600) == 0
    finally:
        run.kill()
        run.wait()
        for process in spawned_workers():
            kill(process.pid)
    # The next run clears away what the killed were writing.
    assert "0 to compute" in kshot("run", "steady.toml", "--records", "stormy").stdout
    assert comparable("stormy").equals(comparable("calm"))
    assert not list(Path("stormy").rglob(".tmp-*"))
    assert cells_of(seeds) < fits() <= cells_of(seeds) + rounds * workers


def _start_stormy(workers: int) -> subprocess.Popen:
    return subprocess.Popen(
        [*KSHOT, "run", "steady.toml", "--records", "stormy", "--workers", str(workers)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _wait_for_a_new_cell(run: subprocess.Popen, written: dict) -> None:
    wait_until(lambda: run.poll() is not None or stamps("stormy").keys() - written.keys(), "no new cell")
    assert run.poll() is None, "the run ended before it could be killed"


def _wait_until_gone(team: set[int]) -> None:
    """A pool of workers ends with its driver, and with the first of them that dies."""
    wait_until(lambda: team.isdisjoint(process.pid for process in spawned_workers()), "workers live on")


@pytest.mark.slow
def test_a_report_of_an_unfinished_run_says_so(finished):
    assert "UNFINISHED" not in kshot("report", finished).stdout
    for seed in (0, 1):
        Records(finished).cell_files(Cell("sim-pets", "simulated", "dataset", 2, seed))[0].unlink()
    told = "UNFINISHED, 2 of 12 cells to compute"
    assert told in " ".join(kshot("report", finished).stdout.split())
    assert told in kshot("report", finished, "--format", "csv", "--table", "headline").stderr
    for name in ("report.md", "report.html"):
        assert told in (finished / "report" / name).read_text(encoding="utf-8")
