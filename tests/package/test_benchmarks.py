"""Every benchmark runs at a small size, and fails where its work was not done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import NAMES

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_does_its_work(name):
    command = [sys.executable, "-m", "benchmarks", "--small", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) > 1


def test_an_unknown_benchmark_is_named_with_those_that_are():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "clop"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "clop" in done.stderr
    assert "clap" in done.stderr
