"""kshot imports and runs where modules of POSIX are not: macOS and Windows, by construction."""

import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = ("fcntl", "grp", "posix_ipc", "pty", "pwd", "resource", "syslog", "termios", "tty")
# `posix` itself stays: the interpreter has loaded it, and takes `os` from it.
# What the standard library or another package asks for there, such as threadpoolctl for the libraries in /proc/self/maps,
# is theirs; kshot itself opens nothing below /proc.
HIDE = f"""
import importlib, os, pkgutil, signal, sys
for name in {HIDDEN!r}:
    sys.modules[name] = None
for name in ("fork", "forkpty", "getuid", "geteuid", "getgid", "killpg", "setsid", "register_at_fork"):
    vars(os).pop(name, None)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGALRM", "pthread_sigmask"):
    vars(signal).pop(name, None)
def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc") and "kshot" in sys._getframe(1).f_code.co_filename:
        raise AssertionError(f"{{arguments[0]}} was opened")
sys.addaudithook(refuse)
"""
IMPORT_ALL = f"""
{HIDE}
import kshot
names = [m.name for m in pkgutil.walk_packages(kshot.__path__, "kshot.") if not m.name.endswith("__main__")]
print(sum(importlib.import_module(name) is not None for name in names))
"""
SOURCE = Path(__file__).resolve().parents[2] / "src" / "kshot"


RUN = f"""
{HIDE}
import kshot
study = kshot.load_study("embedded")
"""


def test_every_module_is_imported_without_those_of_posix():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


@pytest.mark.parametrize("word", ["os.fork", "os.kill(", "/proc/", "import fcntl", "import resource", '"fork"'])
def test_no_module_asks_for_what_one_system_has(word):
    assert [path.name for path in SOURCE.rglob("*.py") if word in path.read_text(encoding="utf-8")] == []
