"""What a terminal does to a command: it interrupts it, or lacks a character."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from folders import edit
from kshot.bench.records import Records
from processes import spawned_workers, wait_until

pytestmark = pytest.mark.ci

SENTENCE = "kshot: interrupted. What was finished is kept; run the same command to continue.\n"


@pytest.mark.parametrize("moment", ["workers are starting", "a cell is written"])
def test_an_interrupted_run_says_so_once_and_continues(kshot, moment):
    edit("tiny.toml", "seeds = [0]", f"seeds = {list(range(40))}")
    edit("tiny.toml", '"ncm"', '"ncm", "clap", "lpp"')
    command = [sys.executable, "-m", "kshot", "run", "tiny.toml", "--workers", "2"]
    reached = spawned_workers if moment == "workers are starting" else lambda: list(Path("records").glob("*.parquet"))
    # A suite that a shell put into the background, and all that it starts, would not hear interrupts.
    listens = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, start_new_session=True, preexec_fn=listens) as running:
        try:
            wait_until(lambda: running.poll() is not None or reached(), f"never: {moment}")
            # As a terminal does: to the command and all that it has started.
            os.killpg(running.pid, signal.SIGINT)
            _, told = running.communicate(timeout=120)
        finally:
            # What does not end must not be waited for.
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert (running.returncode, told) == (130, SENTENCE)
    kept = Records("records").keys()
    assert kshot("run", "tiny.toml").returncode == 0
    assert kept < Records("records").keys()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_no_command_ends_for_a_character_that_the_terminal_lacks(kshot, monkeypatch, encoding):
    assert kshot("run", "tiny.toml").returncode == 0
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    Path("≈.toml").write_text("name = 1\n")
    for arguments, status in [(("report", "tiny"), 0), (("ls", "datasets"), 0), (("run", "≈.toml"), 2)]:
        done = subprocess.run([sys.executable, "-m", "kshot", *arguments], capture_output=True)
        assert (done.returncode, b"Traceback" in done.stderr) == (status, False), done.stderr
