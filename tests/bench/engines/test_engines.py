"""The same records whatever computes them."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from engines.slurm_node import SlurmNode, available
from folders import comparable
from kshot.bench.engines.slurm import sbatch_file
from kshot.errors import InputError

pytestmark = pytest.mark.ci

CELLS = 2 * 3 * 2


@pytest.fixture
def undisturbed(steady, kshot):
    steady(seeds=2, seconds=0)
    done = kshot("run", "steady.toml", "--records", "calm", "--workers", 1)
    assert done.returncode == 0, done.stderr
    return comparable("calm")


def test_dask_started_here(undisturbed, kshot):
    done = kshot("run", "steady.toml", "--records", "other", "--engine", "dask", "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert comparable("other").equals(undisturbed)


def test_dask_cluster_that_exists(undisturbed, kshot, tmp_path):
    from distributed.utils import json_load_robust

    cluster = []

    def start(program: str, *options: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", "scheduler.json"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        cluster.append(subprocess.Popen([*command, *options], **quiet))

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0")
        # The file is there before its content.
        address = json_load_robust("scheduler.json", timeout=180)["address"]
        start("dask_worker", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path / "scratch"))
        done = kshot("run", "steady.toml", "--records", "other", "--engine", f"dask:{address}")
        assert done.returncode == 0, done.stderr
        assert comparable("other").equals(undisturbed)
    finally:
        for process in reversed(cluster):
            process.kill()
            process.wait()


def test_no_cluster_at_the_address(undisturbed, kshot):
    done = kshot("run", "steady.toml", "--records", "x", "--engine", "dask:tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert "no dask scheduler answers at tcp://127.0.0.1:1" in done.stderr


def test_shards_divide_the_study_and_keep_their_share(undisturbed, kshot):
    computed = 0
    for index in range(3):
        out = kshot("run", "steady.toml", "--records", "other", "--shard", f"{index}/3").stdout
        computed += int(out.split(" to compute")[0].split()[-1])
    assert computed == CELLS
    assert comparable("other").equals(undisturbed)
    assert "0 to compute in shard 1/3" in kshot("run", "steady.toml", "--records", "other", "--shard", "1/3").stdout


def test_unknown_engine(undisturbed, kshot):
    assert "unknown engine 'ray'" in kshot("run", "steady.toml", "--engine", "ray").stderr
    assert "unknown engine 'local:tcp://x'" in kshot("run", "steady.toml", "--engine", "local:tcp://x").stderr


def test_the_sbatch_file_is_shown_and_quoted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"--on": ["a/b/c", "d/e/f"], "--shots": []}
    given = {"time": "1-12", "mem": "8G", "account": None}
    text = sbatch_file("s", Path("my study.toml"), Path("records"), options, given, tasks=4, cpus=2)
    assert "#SBATCH --array=0-3" in text
    assert "#SBATCH --cpus-per-task=2" in text
    assert "#SBATCH --time=1-12\n#SBATCH --mem=8G\n#SBATCH --requeue" in text
    with pytest.raises(InputError, match="--account 'a; b' cannot stand in an sbatch file"):
        sbatch_file("s", Path("s.toml"), Path("records"), {}, {"account": "a; b"}, tasks=4, cpus=2)
    assert f"cd {shlex.quote(str(tmp_path))}\n" in text
    ours = "-m kshot run 'my study.toml' --records records --on a/b/c --on d/e/f"
    assert f"""{ours} --shard "${{SLURM_ARRAY_TASK_ID}}/4\"""" in text


@pytest.mark.skipif(not available(), reason="no SLURM on this machine (Debian: slurmctld slurmd slurm-client munge)")
def test_slurm(undisturbed, kshot, tmp_path):
    printed = kshot("slurm", "steady.toml", "--records", "other", "--shards", 3, "--cpus", 1)
    Path("job.sh").write_text(printed.stdout)
    (tmp_path / "slurm").mkdir()
    with SlurmNode(tmp_path / "slurm") as node:
        node.wait(node.submit(tmp_path / "job.sh"))
    logs = "".join(path.read_text() for path in tmp_path.glob("kshot-steady-*.log"))
    assert logs.count("finished in") == 3, logs
    assert comparable("other").equals(undisturbed)
