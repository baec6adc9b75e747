"""The workers of a dask cluster, and a real SLURM node, keep the same records as this process."""

import subprocess
import sys
from pathlib import Path

import pytest

import kshot
import slurm_node
from folders import comparable, missing

pytestmark = pytest.mark.ci


def test_the_workers_of_a_dask_cluster(records, folder):
    distributed = pytest.importorskip("distributed")
    local = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with distributed.LocalCluster(**local) as cluster:
        kshot.run("small.toml", records="dask", backend=f"dask:{cluster.scheduler_address}")
    assert comparable("dask").equals(comparable(records.folder))


@pytest.mark.skipif(not slurm_node.available(), reason="SLURM is not installed: make cluster, as the superuser")
def test_an_array_job_of_slurm(records, folder):
    command = [sys.executable, "-m", "kshot", "run", "small.toml", "--records", "slurm", "--workers", "1"]
    printed = subprocess.run([*command, "--sbatch", "3", "--", "--time=0:10:00"], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    script = Path(folder, "job.sh")
    script.write_text(printed.stdout)
    (place := Path(folder, "node")).mkdir()
    with slurm_node.SlurmNode(place) as node:
        node.wait(node.submit(script))
        logs = [path.read_text() for path in sorted(folder.glob("kshot-small-*.log"))]
        assert [f"to compute in shard {number}/3" in log for number, log in enumerate(logs)] == [True] * 3, logs
        assert comparable("slurm").equals(comparable(records.folder))
        # Submitted again, it fills what is missing.
        lost = kshot.load_records("slurm").cache
        lost.drop(set(sorted(lost.keys())[:7]))
        assert missing("slurm") == 7
        node.wait(node.submit(script))
    assert comparable("slurm").equals(comparable(records.folder))
