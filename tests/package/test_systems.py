"""kshot imports and runs where what only POSIX has is not: macOS and Windows, by construction."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from folders import comparable

HIDDEN = ("fcntl", "grp", "posix_ipc", "pty", "pwd", "resource", "syslog", "termios", "tty")
# `posix` itself stays: the interpreter has loaded it, and takes `os` from it. As sitecustomize, this runs at the start
# of workers, too. What others than kshot open below /proc is theirs.
HIDE = f"""
import os, signal, sys
for name in {HIDDEN!r}:
    sys.modules[name] = None
for name in ("fork", "forkpty", "getuid", "geteuid", "getgid", "killpg", "setsid", "register_at_fork"):
    vars(os).pop(name, None)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGALRM", "pthread_sigmask"):
    vars(signal).pop(name, None)
LIBRARY = os.path.dirname(os.__file__) + os.sep
def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc"):
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.startswith((LIBRARY, "<frozen")):
            frame = frame.f_back
        assert os.sep + "kshot" + os.sep not in frame.f_code.co_filename, arguments[0]
sys.addaudithook(refuse)
"""
IMPORT_ALL = """
import importlib, os, pkgutil, sys
assert sys.modules["fcntl"] is None and not hasattr(os, "fork")
import kshot
names = [m.name for m in pkgutil.walk_packages(kshot.__path__, "kshot.") if not m.name.endswith("__main__")]
print(sum(importlib.import_module(name) is not None for name in names))
"""
RUN = """
import sys, kshot
study = kshot.load_study("embedded").on_datasets(["digits", "emoji"]).with_shots([2]).with_seeds([0, 1])
kshot.run(study, records=sys.argv[1], workers=int(sys.argv[2]))
"""
SOURCE = Path(__file__).resolve().parents[2] / "src" / "kshot"


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a program, with or without what POSIX has, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path("hidden").mkdir()
    Path("hidden", "sitecustomize.py").write_text(HIDE)

    def run(program, *arguments, hide=True):
        paths = [*([str(tmp_path / "hidden")] if hide else []), str(SOURCE.parent)]
        command = [sys.executable, "-c", program, *arguments]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_every_module_is_imported_without_those_of_posix(call):
    assert int(call(IMPORT_ALL)) > 150


@pytest.mark.slow
def test_a_study_runs_without_what_posix_has(call):
    call(RUN, "hidden-records", "2")
    call(RUN, "records", "1", hide=False)
    assert comparable("hidden-records").equals(comparable("records"))
    assert len(comparable("records")) == 4 * 13


@pytest.mark.parametrize("word", ["os.fork", "os.kill(", "/proc/", "import fcntl", "import resource", '"fork"'])
def test_no_module_asks_for_what_one_system_has(word):
    assert [path.name for path in SOURCE.rglob("*.py") if word in path.read_text(encoding="utf-8")] == []
