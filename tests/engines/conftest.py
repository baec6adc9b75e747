"""A study whose cells take a set time, so that kills find work in flight."""

import subprocess
import sys
from pathlib import Path

import pytest

KSHOT = [sys.executable, "-m", "kshot"]
STUDY = """
name = "steady"
datasets = ["sim-satellite", "sim-pets"]
backbones = ["simulated"]
tiers = ["dataset"]
shots = [1, 2, 4]
seeds = {seeds}
methods = ["zero_shot", "loo_blend", "steady:Steady"]
"""
# Logs every fit, so that a test can count how often anything was computed.
METHOD = """
import os, time
from kshot.methods.ncm import NCM

class Steady(NCM):
    def _fit(self, task):
        log = os.open("fits.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, b"x")
        os.close(log)
        time.sleep({seconds})
        super()._fit(task)
"""


@pytest.fixture
def steady(tmp_path, monkeypatch):
    """Writes the study into an empty folder; returns a function that sets its size and the seconds of a cell."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(seeds: int, seconds: float) -> None:
        Path("steady.toml").write_text(STUDY.format(seeds=list(range(seeds))))
        Path("steady.py").write_text(METHOD.format(seconds=seconds))

    return write


@pytest.fixture
def kshot():
    def call(*arguments):
        return subprocess.run([*KSHOT, *map(str, arguments)], capture_output=True, text=True)

    return call
