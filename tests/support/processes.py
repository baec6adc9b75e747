"""The processes of one test's folder, so that tests which kill never meet those of another suite."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    command: str


def in_this_folder() -> list[Process]:
    """Processes that work in the current folder; a dead one that nobody has waited for works nowhere."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") != os.getcwd():
                continue
            # The name in parentheses may hold spaces; the state and the parent follow it.
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        found.append(Process(int(entry.name), parent, command))
    return found


def spawned_workers() -> list[Process]:
    """Workers of drivers in this folder, also of dead ones (and not their resource trackers)."""
    return [process for process in in_this_folder() if "loky.backend.popen_loky" in process.command]


def kill(pid: int) -> bool:
    """SIGKILL for a process of this folder; whether it was still there. It is gone afterwards."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    wait_until(lambda: all(process.pid != pid for process in in_this_folder()), f"{pid} survived SIGKILL")
    return True


def wait_until(condition: Callable[[], object], message: str, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.05)
